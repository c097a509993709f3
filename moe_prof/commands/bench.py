"""The ``bench`` command: correct first, then timed in pairs."""

from __future__ import annotations

import argparse
from dataclasses import replace

from rich.console import Group

from moe_prof import machine
from moe_prof.analysis import crowding
from moe_prof.analysis.query import RowIndex
from moe_prof.collectors import builtin
from moe_prof.commands import emulated_bench
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.comparing import add_comparison
from moe_prof.commands.emulated import add_target, is_foreign
from moe_prof.commands.layer import with_layer
from moe_prof.commands.options import (
    add_build,
    add_weights,
    add_workload,
    force_path_of_build,
    positive_int,
    split_output,
)
from moe_prof.commands.toolchains import add_toolchains, compiled_jobs, renamed, toolchains
from moe_prof.commands.versus import Versus
from moe_prof.commands.workload import Workload, open_session, why_not, workload_from
from moe_prof.measure import Measurement, Request, measure
from moe_prof.measure.pyperf_suite import write_suite
from moe_prof.measure.results import DEFAULT_PROCESSES, WORKLOAD_FAILURES, Job
from moe_prof.progress import Progress
from moe_prof.render.bench_table import bench_body
from moe_prof.rows import Row, unavailable
from moe_prof.units import named_text

BASELINE = "scalar"
EXIT_UNAVAILABLE = 3
EXIT_WORKLOAD = 6
EXIT_INTERRUPTED = 130


class Bench:
    """time kernel variants against each other. Every variant is first compared with the float64
    oracle; a wrong one gets no time and no speedup (exit code 6). Variants are interleaved in
    several processes; shown are medians with 95 % intervals and speedups over 'scalar', which is
    always measured. --vs compares them with an old variant or library, in pairs in the same run, or
    with a session. Example: moe-prof bench S3 --variant ./new.so --vs ./old.so
    """

    name = "bench"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The workload's options, which build to time, and what to compare with."""
        add_workload(parser, default_variants="all")
        add_weights(parser)
        add_build(parser)
        add_toolchains(parser)
        parser.add_argument(
            "--processes", metavar="P", type=positive_int, default=None,
            help="worker processes: more tell smaller differences (default: "
            f"{DEFAULT_PROCESSES}; with --vs VARIANT further ones until the verdict is clear, as "
            "long as time is left)",
        )  # fmt: skip
        parser.add_argument(
            "--vs", metavar="OLD", default=None,
            help="compare with OLD: a variant or a library, timed in the same rounds (paired), or "
            "the folder of a session (unpaired) (default: no comparison)",
        )  # fmt: skip
        add_comparison(parser)
        add_target(parser, "check and count the variants")

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Verify and time; raises MoeProfError."""
        if is_foreign(args):
            return emulated_bench.run(args, progress)
        folder = split_output(args)
        facts = machine.read()
        force_path_of_build(args)
        versus = Versus(args)
        args.variant = versus.variants(args.variant)
        workload = workload_from(args, facts)
        jobs = compiled_jobs(
            toolchains(args), _with_baseline(workload.variants),
            isa=workload.isa, build=args.build, baseline=BASELINE, progress=progress,
        )  # fmt: skip
        variants = tuple(jobs)
        versus.check(replace(workload, variants=variants), facts)
        request = replace(
            _request(args, workload, tuple(jobs.values())), enough=versus.enough(jobs)
        )
        measured = replace(workload, variants=variants)
        with open_session(
            self.name, measured, facts, argv=args.argv, folder=folder, build=args.build
        ) as opened:
            measurement = renamed(measure(request, progress, folder=opened.raw), jobs)
            rows = opened.add(_rows(measurement, workload, facts.usable_cpus()))
            with opened.writing():
                write_suite(measurement, workload.scenario, opened.raw)
            compared = versus.compare(opened.manifest.run_id, rows)
            rows += opened.add(compared.rows)
            crowded = crowding.warning(RowIndex(rows), variants)
            for note in (*filter(None, [crowded]), *measurement.notes):
                opened.note(note)
            if measurement.interrupted:
                opened.update(state="partial")
            exit_code, errors = _outcome(measurement)
            if not exit_code:
                exit_code, errors = compared.exit_code, compared.errors
            result = Result(
                rows=tuple(rows),
                body=Group(
                    bench_body(
                        measurement, workload.scenario, workload.left_out, rows, facts.usable_cpus()
                    ),
                    *compared.view,
                ),
                machine=facts.as_dict(),
                session=opened.folder,
                exit_code=exit_code,
                errors=errors,
            )
            result = with_layer(result, workload.scenario, opened)
        return with_trouble(result, opened.trouble)


def _request(args: argparse.Namespace, workload: Workload, jobs: tuple[Job, ...]) -> Request:
    return Request(
        scenario=workload.scenario,
        jobs=jobs,
        threads=workload.threads,
        seed=workload.seed,
        repeat=args.repeat,
        max_time_s=args.max_time_s,
        processes=args.processes or DEFAULT_PROCESSES,
        build=args.build,
    )


def _with_baseline(variants: tuple[str, ...]) -> tuple[str, ...]:
    """The variants with the baseline of all speedups in front, when it is missing and runs here."""
    if BASELINE in variants or why_not(BASELINE, None):
        return variants
    return (BASELINE, *variants)


def _rows(measurement: Measurement, workload: Workload, usable_cpus: int) -> list[Row]:
    rows = builtin.timing_rows(measurement, workload.scenario, usable_cpus=usable_cpus)
    for variant, reason in workload.left_out:
        for metric, unit in (("time", "s"), ("speedup", "1")):
            rows.append(
                unavailable(
                    metric, unit, reason, scenario=workload.scenario.label, variant=variant,
                    collector=builtin.NAME,
                )
            )  # fmt: skip
    return rows


def _outcome(measurement: Measurement) -> tuple[int, tuple[str, ...]]:
    """The exit code, and one line for every variant that has no time."""
    lines = tuple(
        named_text(timing.variant, timing.reason or "no sample was taken")
        for timing in measurement.timings
        if not timing.trusted
    )
    if any(timing.status in WORKLOAD_FAILURES for timing in measurement.timings):
        return EXIT_WORKLOAD, lines
    if measurement.interrupted:
        return EXIT_INTERRUPTED, ("interrupted", *lines)
    measured = [t for t in measurement.timings if t.trusted and t.variant != BASELINE]
    asked_only_baseline = all(t.variant == BASELINE for t in measurement.timings)
    if not measured and not (asked_only_baseline and not lines):
        return EXIT_UNAVAILABLE, lines
    return 0, lines
