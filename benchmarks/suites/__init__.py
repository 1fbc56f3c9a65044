"""One module or folder per command: what it asks, and its command line."""
