"""The first command of the README as a picture of a terminal: docs/images/demo.svg, and moving: demo-moving.svg.

    python tools/terminal_picture.py [COMMAND ...]        # by default: ifonly demo

In the moving one the command is typed, then its output appears line by line and stays; with reduced motion, and on
paper, all of it is there at once. No fonts are loaded.
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
MOVING = PICTURE.with_name("demo-moving.svg")
COLUMNS = 100
TYPED_SECONDS, LINE_SECONDS = 1.0, 0.07
BEGIN_SECONDS = 0.5
LINE = re.compile(r'<text (class="[^"]*" [^>]*clip-path="url\(#demo-line-(\d+)\)")')


def main(command: list[str]) -> None:
    """Run the command, and draw what it prints."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.run([sys.executable, "-m", *command], env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {' '.join(command)}"))
    console.print(Text.from_ansi(done.stdout))
    drawn = console.export_svg(title=" ".join(command), unique_id="demo")
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.S)
    drawn = re.sub(r"[ \t]+\n", "\n", drawn)
    PICTURE.write_text(drawn, encoding="utf-8")
    MOVING.write_text(moving(drawn, len(" ".join(command)) + 2), encoding="utf-8")


def moving(drawn: str, letters: int) -> str:
    """The picture whose first line is typed, and whose other lines appear one after the other."""

    def delayed(found: re.Match[str]) -> str:
        line = int(found[2])
        begin = BEGIN_SECONDS + (TYPED_SECONDS + 0.3 + LINE_SECONDS * line if line else 0.0)
        return f'<text style="--begin: {begin:.2f}s" data-line="{line}" {found[1]}'

    style = f"""
    @keyframes demo-appear {{ from {{ opacity: 0; }} }}
    @keyframes demo-type {{ from {{ clip-path: inset(0 100% 0 0); }} to {{ clip-path: inset(0 0 0 0); }} }}
    @media screen and (prefers-reduced-motion: no-preference) {{
        .demo-matrix text {{ animation: demo-appear 0.01s var(--begin) backwards; }}
        .demo-matrix text[data-line="0"] {{
            animation: demo-type {TYPED_SECONDS}s steps({letters}) var(--begin) backwards; }}
    }}
    </style>"""
    return LINE.sub(delayed, drawn).replace("</style>", style.lstrip("\n"), 1)


if __name__ == "__main__":
    main(sys.argv[1:] or ["ifonly", "demo"])
