"""`python -m holdfast`: the same as the program `holdfast`."""

import sys

from holdfast.cli import main

sys.exit(main())
