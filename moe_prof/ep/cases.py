"""What an expert-parallel run computes: the case, its split over ranks, and what ranks are asked.

One case is one global batch, whatever the number of ranks: ``tokens`` counts all of them together,
they are made once from the seed and split in order, so that every number of ranks computes the same
output, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from moe_prof.errors import UsageError

Routing = Literal["uniform", "lognormal", "hot"]
ROUTINGS: tuple[Routing, ...] = get_args(Routing)
Dtype = Literal["bf16", "fp16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
Transport = Literal["auto", "shared", "put"]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
FaultKind = Literal["die", "exit", "hang", "error"]
FAULTS: tuple[FaultKind, ...] = get_args(FaultKind)

FUSED, SMALL_OPS = "fused", "small_ops"
OVERLAP_ONLY, CACHE_ONLY = "overlap_only", "cache_only"
VARIANTS = (FUSED, SMALL_OPS)
ABLATIONS = (OVERLAP_ONLY, CACHE_ONLY)

MAX_TOKENS_PER_RANK = 256
"""Of the operator's ranges, see ``moe_prof.ep.operands``."""


@dataclass(frozen=True, slots=True)
class Case:
    """One problem: sizes, batch and routing.

    Attributes:
        h: hidden size.
        n: columns of the first weight, gate and up together (``gmm1HLen``).
        experts / top_k: of the whole layer.
        tokens: of all ranks together.
        ranks: how many share the experts and the tokens.
    """

    h: int
    n: int
    experts: int
    top_k: int
    tokens: int
    ranks: int
    routing: Routing = "uniform"
    dtype: Dtype = "bf16"
    seed: int = 0

    @property
    def label(self) -> str:
        """``512,1024 E8 K4 T64 P2 uniform``: the scenario of its rows."""
        return (
            f"{self.h},{self.n} E{self.experts} K{self.top_k} T{self.tokens} P{self.ranks} "
            f"{self.routing}"
        )

    @property
    def local_experts(self) -> int:
        """Experts of one rank."""
        return self.experts // self.ranks

    @property
    def max_tokens(self) -> int:
        """Tokens of the rank that has most of them."""
        return -(-self.tokens // self.ranks)

    @property
    def rows(self) -> int:
        """(token, expert) pairs."""
        return self.tokens * self.top_k

    def tokens_of(self, rank: int) -> slice:
        """The tokens of a rank within the global batch: in order, the first ranks one more."""
        each, more = divmod(self.tokens, self.ranks)
        start = rank * each + min(rank, more)
        return slice(start, start + each + (rank < more))

    def check(self) -> None:
        """Refuse what cannot be split.

        Raises:
            UsageError: naming the argument, its value and its range.
        """
        if self.experts % self.ranks:
            raise UsageError(
                f"--experts {self.experts}: must be a multiple of the {self.ranks} ranks; use "
                f"{-(-self.experts // self.ranks) * self.ranks} experts, or other --ranks"
            )
        if self.top_k > self.experts:
            raise UsageError(
                f"--top-k {self.top_k}: a token cannot choose more than the {self.experts} experts"
            )
        if self.max_tokens > MAX_TOKENS_PER_RANK:
            raise UsageError(
                f"--tokens {self.tokens}: {self.max_tokens} on one of {self.ranks} ranks, at most "
                f"{MAX_TOKENS_PER_RANK}; use fewer tokens, more --ranks or a larger --top-k"
            )


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a rank shall show in its ``call``-th call, to see what the others say."""

    kind: FaultKind
    rank: int
    call: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Everything that ranks are asked, the same on all.

    Attributes:
        cases: all of one number of ranks, in the order in which they run.
        variants: interleaved within a case.
        repeat: rounds; None: as many as the time allows.
        max_time_s: bound for all cases together, None: about ``DEFAULT_CASE_S`` each.
        verify: compare with the float64 oracle.
        isa: forced instruction-set path, None for the best.
        threads: of each rank.
        trace: folder for traces, None for none.
        fault: to inject, None for none.
    """

    cases: tuple[Case, ...]
    variants: tuple[str, ...]
    repeat: int | None = None
    max_time_s: float | None = None
    verify: bool = False
    isa: str | None = None
    threads: int = 1
    transport: Transport = "auto"
    deadline_s: float = 10.0
    trace: str | None = None
    fault: Fault | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
        """The inverse of :meth:`to_json`."""
        fault = data["fault"]
        made = {
            "cases": tuple(Case(**case) for case in data["cases"]),
            "variants": tuple(data["variants"]),
            "fault": None if fault is None else Fault(**fault),
        }
        return cls(**{**data, **made})
