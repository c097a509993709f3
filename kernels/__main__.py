"""``python -m moe_prof.kernels include``: the folder of ``moe_prof.h``, for other builds."""

from __future__ import annotations

import sys

from moe_prof.kernels.build import SOURCE_DIR

USAGE = "usage: python -m moe_prof.kernels include    print the folder of moe_prof.h\n"


def main(words: list[str]) -> int:
    """Print the folder; returns the exit code."""
    if words != ["include"]:
        sys.stderr.write(USAGE)
        return 2
    sys.stdout.write(f"{SOURCE_DIR / 'include'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
