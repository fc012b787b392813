"""For `python -m bridge.bench`, which is `bridge bench`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
