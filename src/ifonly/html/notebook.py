"""Detection of a notebook."""

from __future__ import annotations

import sys


def in_notebook() -> bool:
    """Does the kernel of a notebook run this?"""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
