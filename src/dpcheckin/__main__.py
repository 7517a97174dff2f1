"""The command `dpcheckin`, also as `python -m dpcheckin` where no script is on the path.

The parser takes a moment to load: an interrupt in that moment is as good as any other.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from dpcheckin.cli import main as run
    except KeyboardInterrupt:
        print("dpcheckin: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
