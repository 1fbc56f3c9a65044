"""`python -m ifonly` is the command line."""

from ifonly.cli import main

if __name__ == "__main__":
    main()
