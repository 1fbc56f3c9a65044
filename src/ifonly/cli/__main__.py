"""`python -m ifonly.cli` is `ifonly`."""

from ifonly.cli import main

main()
