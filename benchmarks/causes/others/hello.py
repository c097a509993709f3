"""Planted: too_short. Ends at once."""

import sys

sys.stdout.write("hello\n")
