"""``python -m calibrant.cli`` is the command ``calibrant``."""

import sys

from calibrant.cli import main

sys.exit(main())
