"""The command line: thin; it parses, calls, prints.

Command modules import only click at the top, so that `ifonly --help` is quick; what they need comes inside.
"""


def main() -> None:
    """Entry point."""
    import sys

    from ifonly.cli.app import app

    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot spell must not stop the program
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app.main()
