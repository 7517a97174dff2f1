"""`python -m dpcheckin`: the command line, where no script is on the path."""

from dpcheckin.cli import main

if __name__ == "__main__":
    main()
