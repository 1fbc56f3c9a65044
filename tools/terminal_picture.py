"""The first command of the README as a picture of a terminal: docs/images/demo.svg.

    python tools/terminal_picture.py [COMMAND ...]        # by default: ifonly demo

The picture loads no fonts from anywhere; what the terminal has is used.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "demo.svg"
COLUMNS = 100


def main(command: list[str]) -> None:
    """Run the command, and draw what it prints."""
    asked = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.run([sys.executable, "-m", *command], env=asked, capture_output=True, text=True, check=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {' '.join(command)}"))
    console.print(Text.from_ansi(done.stdout))
    drawn = console.export_svg(title=" ".join(command), unique_id="demo")
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.S)
    PICTURE.write_text(re.sub(r"[ \t]+\n", "\n", drawn), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or ["ifonly", "demo"])
