"""``bench --vs OLD``: what OLD is, whether it may be compared, and the comparison."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from moe_prof import session as sessions
from moe_prof.analysis import comparison_rows
from moe_prof.analysis.comparison import BASELINE, Side, compare, pairs_between, pairs_within
from moe_prof.analysis.decision import settled
from moe_prof.analysis.differences import (
    Identity,
    VariantFacts,
    differences,
    identity,
    remarks,
    weights_text,
)
from moe_prof.commands.comparing import judged, refuse
from moe_prof.commands.workload import Workload, isa_for
from moe_prof.errors import BuildError, UsageError
from moe_prof.kernels import selection
from moe_prof.kernels.build import Kind, sources_digest
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import Machine
from moe_prof.measure.jobs import job_of
from moe_prof.measure.results import Job
from moe_prof.render.compare_view import comparison_view
from moe_prof.rows import Row, unavailable
from moe_prof.session import MANIFEST, SavedSession
from moe_prof.stats import Samples
from moe_prof.toolversions import BUILD_TOOL, SOURCES_TOOL


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison adds to the result of ``bench``; nothing without ``--vs``."""

    rows: tuple[Row, ...] = ()
    view: tuple[RenderableType, ...] = ()
    exit_code: int = 0
    errors: tuple[str, ...] = ()


@dataclass
class Versus:
    """The old side of a run that is still to come.

    Raises:
        UsageError: an option of comparisons without ``--vs``.
        InputError: ``--vs`` is a folder, but no session.
    """

    args: argparse.Namespace
    saved: SavedSession | None = None
    name: str | None = None
    _notes: list[str] = field(default_factory=list)
    _alike: bool = True

    def __post_init__(self) -> None:
        text: str | None = self.args.vs
        if text is None:
            if self.args.fail_on is not None or self.args.allow or self.args.force:
                raise UsageError(
                    "--fail-on, --allow and --force need something to compare: --vs OLD"
                )
        elif Path(text).is_dir() or (Path(text) / MANIFEST).exists():
            self.saved = sessions.load(text)
        elif text in BY_NAME or selection.is_library_path(text):
            self.name = text
        else:
            raise UsageError(
                f"--vs {text[:80]}: neither the folder of a session, nor a library, nor one of the "
                f"variants {', '.join(BY_NAME)}"
            )

    def variants(self, text: str) -> str:
        """The variants to time: the old one among them.

        Raises:
            UsageError: the old one is the only one.
        """
        names = [part.strip() for part in text.split(",") if part.strip()]
        if names and set(names) == {self.name}:
            raise UsageError(f"--vs {self.name} is what --variant names; name another on one side")
        if self.name is None or self.name in names:
            return text
        if text.strip().lower() != "all":
            return f"{self.name},{text}"
        return text if self.name in BY_NAME else f"{self.name},{','.join(selection.variants())}"

    def check(self, work: Workload, machine: Machine) -> None:
        """Refuse before anything is measured what could not be compared.

        Raises:
            UsageError: the session was measured otherwise, or has none of the variants.
        """
        if self.saved is None:
            return
        old = Side(self.saved.manifest.run_id, self.saved.rows)
        rows = tuple(
            unavailable("time", "s", "to come", collector="builtin", variant=name,
                        scenario=work.scenario.label)
            for name in work.variants
        )  # fmt: skip
        pairs = pairs_between(old, Side("", rows))
        before = identity(self.saved.manifest, self.saved.rows)
        after = _identity(work, machine, self.args.build)
        couples = [(pair.old, pair.new) for pair in pairs]
        what = f"{self.saved.folder} and this run"
        found = differences(before, after, couples)
        self._alike = not found
        self._notes += refuse(found, self.args, what)
        self._notes += [*remarks(before, after), *self.saved.remarks]

    def enough(self, jobs: Mapping[str, Job]) -> Callable[[Mapping[str, Samples]], bool] | None:
        """What tells a run when its samples answer the question; None without an old variant.

        Args:
            jobs: what is measured, by the name that the report gives it.
        """
        if self.name is None or self.args.processes is not None:
            return None
        old = jobs[self.name].variant
        others = [name for name in jobs if name not in (self.name, BASELINE)] or [BASELINE]

        def settled_all(samples: Mapping[str, Samples]) -> bool:
            return all(
                settled(
                    samples[old], samples[jobs[name].variant],
                    margin=self.args.margin, limit=self.args.fail_on,
                )
                for name in others if samples[jobs[name].variant]
            )  # fmt: skip

        return settled_all

    def compare(self, run_id: str, rows: Sequence[Row]) -> Compared:
        """The rows of the finished run against the old side."""
        new = Side(run_id, tuple(rows))
        if self.saved is not None:
            old = Side(self.saved.manifest.run_id, self.saved.rows)
            pairs = pairs_between(old, new)
            title = f"against {self.saved.folder} ({self.saved.manifest.started[:16]})"
        elif self.name is not None:
            measured = dict.fromkeys(name for _, name in new.places)
            others = [name for name in measured if name not in (self.name, BASELINE)]
            old, title = new, f"against {self.name}, in the same run"
            pairs = pairs_within(new, (self.name, *(others or [BASELINE])))
        else:
            return Compared()
        found = compare(old, new, pairs, margin=self.args.margin, alike=self._alike)
        view = comparison_view(found, margin=self.args.margin, remarks=self._notes)
        exit_code, errors = judged(found, self.args.fail_on)
        made = tuple(comparison_rows.rows(found))
        return Compared(made, ("", Text(title, style="bold"), *view), exit_code, errors)


def _identity(work: Workload, machine: Machine, build: Kind) -> Identity:
    """What the run to come will be, in the words of its manifest."""
    tools = {BUILD_TOOL: str(build)}
    with contextlib.suppress(BuildError):
        tools["c++"] = find_compiler().version
        tools[SOURCES_TOOL] = sources_digest()
    source = work.scenario.checkpoint
    return Identity(
        weights="" if source is None else weights_text(source.path, source.layer),
        scenario=work.scenario.label,
        shape=work.scenario.shape,
        seed=work.seed,
        imported=False,
        machine=machine.as_dict(),
        tools=tools,
        environment={k: os.environ[k] for k in sessions.RECORDED_VARIABLES if k in os.environ},
        variants={name: _facts(name, work) for name in work.variants},
    )


def _facts(name: str, work: Workload) -> VariantFacts:
    """Threads and path as the run will have them; the path of a library is its own."""
    threads = job_of(name).threads or work.threads
    if name not in BY_NAME or BY_NAME[name].language != "c++":
        return VariantFacts(threads, "")
    return VariantFacts(threads, isa_for(name, work.isa) or selection.isas(name)[0])
