"""``hotspots --target``: what another architecture's variants execute, in an emulator."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from moe_prof.collectors import gprof, qemu_user
from moe_prof.collectors.stacks import Profile
from moe_prof.commands.base import Result, with_trouble
from moe_prof.commands.emulated import foreign
from moe_prof.commands.hotspots_run import ProfileRun
from moe_prof.errors import UsageError
from moe_prof.hotspots.collect import Setting, Target
from moe_prof.kernels.build import Kind
from moe_prof.progress import Progress


def run(args: argparse.Namespace, progress: Progress) -> Result:
    """Profile each variant: counted instructions by function, or gprof's samples.

    Raises:
        BuildError: the cross compiler fails.
        UsageError: a profiler or an option that the emulator has not.
        UnavailableError: not one variant could be profiled.
    """
    if args.tool not in (None, gprof.NAME):
        raise UsageError(
            f"--with {args.tool} cannot look into an emulated program; with --target there is the "
            f"emulator's own count (the default) and --with {gprof.NAME}"
        )
    if args.lines:
        raise UsageError(
            "--lines: instructions are counted by function in an emulator; leave it out"
        )
    sampled = args.tool == gprof.NAME
    kind: Kind = "gprof" if sampled else "phases"
    with foreign("hotspots", args, progress, build=kind) as there:
        emulation = there.emulation
        profile = emulation.sampled if sampled else emulation.profile

        def collect(target: Target, setting: Setting) -> Profile:
            del setting
            return profile(target.variant, there.timeout_s())

        tool = gprof.NAME if sampled else qemu_user.NAME
        collectors: Mapping[str, Callable[[Target, Setting], Profile]] = {tool: collect}
        ran = ProfileRun(
            there.work, there.machine, there.session, progress, there.deadline, args, (tool,), "",
            collectors,
        )  # fmt: skip
        ran.all()
        result = ran.result()
    return with_trouble(result, there.session.trouble)
