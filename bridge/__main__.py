"""`python -m bridge`."""

import sys

from .cli import main

sys.exit(main())
