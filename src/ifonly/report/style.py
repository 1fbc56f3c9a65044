"""How the audit page looks: on phones and large screens, light and dark, on paper, and without colour.

Blue and orange are told apart with any colour vision; parts of bars differ in lightness and hatching as well, lines in
their dashes. Nothing is loaded from anywhere: the style sheet is copied into the page.
"""

from __future__ import annotations

from pathlib import Path


def style() -> str:
    """The style sheet."""
    return (Path(__file__).parent / "audit.css").read_text(encoding="utf-8")


PATTERNS = (
    '<svg class="defs" aria-hidden="true" focusable="false"><defs>'
    '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" style="fill:var(--none)"/><path d="M0 0V6" style="stroke:var(--halo);stroke-width:3"/>'
    "</pattern>"
    '<pattern id="dotted" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<rect width="4" height="4" style="fill:var(--sheet)"/><rect width="2" height="2" style="fill:var(--open)"/>'
    "</pattern></defs></svg>"
)
