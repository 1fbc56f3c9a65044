"""The command line: thin; it parses, calls, prints."""


def main() -> None:
    """Entry point."""
    raise SystemExit("not there yet")
