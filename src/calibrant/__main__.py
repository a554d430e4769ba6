"""``python -m calibrant`` is the command ``calibrant``."""

import sys

from calibrant.cli import main

if __name__ == "__main__":
    sys.exit(main())
