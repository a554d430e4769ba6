"""``python -m calibrant.demo`` is what ``script/demo`` runs."""

import sys

from calibrant.demo import main

if __name__ == "__main__":
    sys.exit(main())
