"""``python -m polyfm.cli``."""

import sys

from polyfm.cli import main

sys.exit(main())
