"""``python -m moe_prof``: the command line (see :mod:`moe_prof.cli`)."""

from moe_prof.cli import entry_point

if __name__ == "__main__":
    entry_point()
