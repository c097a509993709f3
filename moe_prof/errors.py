"""The one tree of errors; each class carries the exit code that ``cli.main`` returns for it.

A message says what failed, on what, and what to do next, in one line. Only ``cli.main`` prints
errors or exits; everything else raises.
"""


class MoeProfError(Exception):
    """Base of every error that a user can cause or must act on (exit code 1)."""

    exit_code = 1


class UsageError(MoeProfError):
    """The request itself is wrong: unknown name, bad size, bad option (exit code 2)."""

    exit_code = 2


class InputError(MoeProfError):
    """Data given to the library is wrong: shape, dtype, a non-finite value, an unreadable file."""


class BuildError(MoeProfError):
    """The C++ kernels could not be built; the message carries the compiler's own words."""


class NoCompilerError(BuildError):
    """There is no C++ compiler of that name, or none at all (exit code 3)."""

    exit_code = 3


class ToolError(MoeProfError):
    """A profiler could not be started or failed by itself."""


class UnavailableError(MoeProfError):
    """The data asked for cannot be had on this machine (exit code 3)."""

    exit_code = 3


class RegressionFoundError(MoeProfError):
    """A comparison found a slowdown beyond the limit asked for (exit code 4)."""

    exit_code = 4


class NoisyError(MoeProfError):
    """The measurements scatter too much to answer (exit code 5)."""

    exit_code = 5


class WorkloadError(MoeProfError):
    """The workload crashed, hung or computed a wrong result (exit code 6)."""

    exit_code = 6


class PeerError(WorkloadError):
    """A rank of a group did not come, stopped, or called with another setup (exit code 6).

    Attributes:
        peer: the rank that is the cause, -1 where it is unknown.
        stage: what this rank waited for or did then.
    """

    def __init__(self, message: str, peer: int = -1, stage: str = "") -> None:
        super().__init__(message)
        self.peer = peer
        self.stage = stage
