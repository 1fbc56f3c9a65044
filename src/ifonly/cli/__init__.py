"""The command line interface: parses options, calls the library, prints results.

Command modules import only click at the top, so that `ifonly --help` is quick; the rest is imported by their functions.
"""


def main() -> None:
    """Entry point."""
    import sys

    from ifonly.cli.app import app

    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot spell must not stop the program
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app.main()
