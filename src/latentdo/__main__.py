"""``python -m latentdo`` is the same as ``latentdo``."""

import sys

from latentdo.cli import main

if __name__ == "__main__":
    sys.exit(main())
