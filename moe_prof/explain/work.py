"""Rules on one stage: what its working time is spent on."""

from __future__ import annotations

import re
from typing import Any

from moe_prof.analysis.ceilings import Level
from moe_prof.analysis.phase_shares import INSTRUCTIONS, WORKING_TIME, phase_shares
from moe_prof.analysis.work import count_work
from moe_prof.errors import MoeProfError
from moe_prof.explain.costs import memory_share, mispredict_share, miss_share
from moe_prof.explain.finding import Certainty, Told
from moe_prof.explain.stage import ASSISTS, Stage
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.scenario import parse as parse_scenario
from moe_prof.units import bytes_text, digits_text, share_text

RETIRING_MIN = 0.5
BUSY_IPC_MIN = 1.5
FEW_MISSES = 0.15
BRANCH_SHARE_MIN = 0.15
BAD_SPECULATION_MIN = 0.2
FRONTEND_MIN = 0.25
MEMORY_BOUND_MIN = 0.25
STREAM_SHARE_MIN = 0.4
LATENCY_SHARE_MIN = 0.5
HOT_PHASE_MIN = 0.25
HOT_EXP_MIN = 0.1
ASSISTS_PER_INSTRUCTION = 1e-4
"""An assist costs about 150 cycles (A. Fog): so many make up a hundredth of the instructions'
cycles at IPC 1."""
FAULT_S = 0.5e-6
"""A minor page fault in Linux on x86 costs 0.25 to 1 us, zeroing of the page included."""
FAULT_SHARE_MIN = 0.1
_EXP = re.compile(r"(?:^|[^a-zA-Z])(?:expf?|exp2f?|expm1f?|tanhf?)(?:_fma|_avx\w*|_sse\w*|@\S*)?$")
_ROUTER = re.compile(r"router|top_?k|sigmoid|softmax", re.IGNORECASE)
_MR = re.compile(r"_(\d+)x\d+")


def by_measurement(row: Row) -> Certainty:
    """A measured value is certain, any other one likely."""
    return "certain" if row.provenance == "measured" else "likely"


def verdict(stage: Stage) -> Told | None:
    """The cause that the measuring command found."""
    row = stage.index.row(stage.variant, "verdict")
    reason = stage.index.row(stage.variant, "verdict_evidence")
    if row is None or reason is None or not row.source:
        return None
    if row.source == "unknown":
        if row.scope != "process":
            return None  # the other rules have more to go by
        advice = stage.index.row(stage.variant, "verdict_advice")
        return Told(
            f"What bounds it was not found when it was measured: {reason.source}.", (row, reason),
            "possible", "" if advice is None else advice.source,
        )  # fmt: skip
    cause = row.source.replace("_", " ")
    return Told(f"The cause that was found when it was measured: {cause}.", (row, reason),
                by_measurement(row))  # fmt: skip


def instruction_bound(stage: Stage) -> Told | None:
    """A busy pipeline with too many instructions."""
    retiring = stage.row("Retiring")
    if retiring is not None:
        if (retiring.value or 0.0) < RETIRING_MIN:
            return None
        return Told(
            "It is bound by its number of instructions: most issue slots retire one, so the core "
            "is busy, not stalled. A higher IPC would not help; fewer instructions would.",
            stage.rows_of("Retiring", "IPC", "instructions_per_mac"),
            by_measurement(retiring),
        )
    ipc, lost = stage.value("IPC"), miss_share(stage)
    if ipc is None or ipc < BUSY_IPC_MIN or lost is None or lost > FEW_MISSES:
        return None
    return Told(
        "It is probably bound by its number of instructions: IPC is high, and the counted misses "
        "can explain only a small part of the cycles.",
        stage.rows_of("IPC", "instructions", "cache-misses", "branch-misses"),
        "likely",
    )


def branch_bound(stage: Stage) -> Told | None:
    """Mispredicted branches."""
    slots = stage.row("Bad_Speculation")
    if slots is not None and slots.provenance == "measured":
        if (slots.value or 0.0) < BAD_SPECULATION_MIN:
            return None
        return Told(
            "Unpredictable branches cost a large part of its issue slots.",
            stage.rows_of("Bad_Speculation", "branch-misses", "branch_miss_rate"),
        )
    share = mispredict_share(stage)
    if share is None or share < BRANCH_SHARE_MIN:
        return None
    return Told(
        f"Mispredicted branches can cost up to {share_text(min(1.0, share))} of its cycles.",
        stage.rows_of("branch-misses", "branch_miss_rate", "cycles"),
        "likely",
    )


def frontend_bound(stage: Stage) -> Told | None:
    """Too little code arrives."""
    row = stage.row("Frontend_Bound")
    if row is None or (row.value or 0.0) < FRONTEND_MIN:
        return None
    text = "The core waits for instructions: fetching and decoding are slower than executing."
    return Told(text, (row,), by_measurement(row))


def memory_bound(stage: Stage) -> Told | None:
    """Slots stalled for data."""
    memory, core = stage.row("Backend_Bound.Memory_Bound"), stage.value("Backend_Bound.Core_Bound")
    if memory is None or (memory.value or 0.0) < max(MEMORY_BOUND_MIN, core or 0.0):
        return None
    if _is_busy(stage):
        return None
    return Told(
        "It is bound by memory: more slots wait for data than for execution units.",
        (memory, *stage.rows_of("Backend_Bound.Core_Bound", "Retiring", "l1d_misses", "ll_misses")),
        by_measurement(memory),
    )


def core_bound(stage: Stage) -> Told | None:
    """Slots stalled for execution units or results."""
    core, memory = stage.row("Backend_Bound.Core_Bound"), stage.value("Backend_Bound.Memory_Bound")
    if core is None or (core.value or 0.0) < max(MEMORY_BOUND_MIN, memory or 0.0):
        return None
    if _is_busy(stage):
        return None
    return Told(
        "It is bound inside the core: more slots wait for execution ports or for a result that "
        "another instruction has yet to make than for data from memory.",
        (core, *stage.rows_of("Backend_Bound.Memory_Bound", "Retiring", "IPC")),
        by_measurement(core),
    )


def _is_busy(stage: Stage) -> bool:
    """Whether most slots retire, so that no stall is the first cause."""
    return (stage.value("Retiring") or 0.0) >= RETIRING_MIN


def memory_latency(stage: Stage) -> Told | None:
    """Cache misses that can fill most of the cycles."""
    share = memory_share(stage)
    if share is None or share < LATENCY_SHARE_MIN or (stage.value("IPC") or 0.0) > 1:
        return None
    return Told(
        "Misses of the last cache can fill most of its cycles: it waits for main memory.",
        stage.rows_of("cache-misses", "cycles", "IPC"),
        "likely",
    )


def weights_leave_cache(stage: Stage) -> Told | None:
    """Reading the weights once from where they live takes a large part of the time."""
    scenario, caches, time = _scenario(stage), stage.machine.get("caches") or [], stage.row("time")
    if scenario is None or time is None or not time.value:
        return None
    work = count_work(scenario)
    size = work.weight_bytes_grouped + work.router_bytes
    level = _level(size, caches, stage.threads)
    ceiling = stage.machine_row(f"ceiling_read_{level}", str(stage.threads)) if level else None
    if ceiling is None or not ceiling.value:
        return None
    share = size / ceiling.value / time.value
    if share < STREAM_SHARE_MIN:
        return None
    place = "main memory" if level == "memory" else f"the {str(level).upper()}"
    near = "It is bound by that bandwidth." if share > 0.7 else "That bandwidth is a near limit."
    return Told(
        f"The weights of one forward, {bytes_text(size)}, come from {place}; reading them once at "
        f"the bandwidth measured here takes {share_text(min(1.0, share))} of its time. {near}",
        (time, ceiling),
        "likely",
    )


def hot_router(stage: Stage) -> Told | None:
    """The router takes a large part of the work."""
    found = _hot(stage, ("router",), _ROUTER, HOT_PHASE_MIN)
    if found is None:
        return None
    share, rows, whole = found
    return Told(
        f"The router is a hidden hot spot: choosing experts, not their arithmetic, takes "
        f"{share_text(share)} of the {whole}.",
        rows,
        _by_whole(whole),
    )


def hot_exp(stage: Stage) -> Told | None:
    """Exponentials take a large part of the work."""
    found = _hot(stage, ("activation",), _EXP, HOT_EXP_MIN)
    if found is None:
        return None
    share, rows, whole = found
    return Told(
        f"Exponentials are a hidden hot spot: the activation takes {share_text(share)} of the "
        f"{whole}, beside products that are far more in number.",
        rows,
        _by_whole(whole),
    )


def counted_only(stage: Stage) -> Told | None:
    """Instructions without any time."""
    count = stage.row("instructions")
    if count is None or stage.time() is not None or stage.row("cycles") is not None:
        return None
    text = "It was counted, not timed: fewer instructions are no speedup until a clock says so."
    return Told(text, (count,), by_measurement(count))


def hot_phase(stage: Stage) -> Told | None:
    """The phase that has most of the instructions, where nothing was timed."""
    parts = phase_shares(stage.index, stage.variant)
    if parts is None or parts.whole != INSTRUCTIONS or stage.time() is not None:
        return None
    most = max(parts.shares, key=parts.shares.__getitem__)
    text, shown = f"{share_text(parts.shares[most])} of its instructions are in {most}", [most]
    if "router" in parts.shares and most != "router":
        text += f", {share_text(parts.shares['router'])} in the router"
        shown.append("router")
    return Told(f"{text}.", tuple(parts.rows[phase] for phase in shown), "likely")


def _by_whole(whole: str) -> Certainty:
    """Instructions of one phase may take longer than those of another."""
    return "certain" if whole == WORKING_TIME else "likely"


def _hot(
    stage: Stage, phases: tuple[str, ...], names: re.Pattern[str], least: float
) -> tuple[float, tuple[Row, ...], str] | None:
    """Share of some phases or functions, the rows, and of what; None below the least share."""
    parts = phase_shares(stage.index, stage.variant)
    if parts is not None:
        share = sum(parts.shares.get(phase, 0.0) for phase in phases)
        rows = tuple(parts.rows[phase] for phase in phases if phase in parts.rows)
        return (share, rows, parts.whole) if share >= least and rows else None
    shares = [row for name, row in stage.functions() if names.search(name.split("(")[0])]
    share = sum(row.value or 0.0 for row in shares)
    return (share, tuple(shares), WORKING_TIME) if shares and share >= least else None


def tiny_buckets(stage: Stage) -> Told | None:
    """Buckets of fewer rows than the microkernel takes at once."""
    scenario = _scenario(stage)
    kernel = stage.index.row(stage.variant, "microkernel")
    match = _MR.search(kernel.source) if kernel is not None else None
    if scenario is None or kernel is None or match is None:
        return None
    work = count_work(scenario)
    used = max(1.0, work.experts_expected - 1)
    rows = scenario.num_tokens * scenario.top_k / used
    height = int(match[1])
    if height < 2 or rows >= height:
        return None
    return Told(
        f"Its buckets are tiny: under even routing an expert in use gets {digits_text(rows)} rows, "
        f"and the microkernel takes {height} at once, so at least "
        f"{share_text(1 - rows / height)} of its rows are padding or take a slower path.",
        (kernel, *stage.rows_of("time")),
        "possible",
    )


def denormals(stage: Stage) -> Told | None:
    """Floating-point assists."""
    count = next(iter(stage.rows_of(*ASSISTS)), None)
    instructions = stage.row("instructions")
    if count is None or instructions is None or not instructions.value:
        return None
    if (count.value or 0.0) < ASSISTS_PER_INSTRUCTION * instructions.value:
        return None
    text = "Denormal numbers need microcode assists, each worth more than a hundred instructions."
    return Told(text, (count, instructions))


def page_faults(stage: Stage) -> Told | None:
    """Page faults that cost a part of the time."""
    faults = next(iter(stage.rows_of("page-faults", "minor-faults", "faults")), None)
    busy = next(iter(stage.rows_of("cpu_time", "task-clock", *("time", "time_elapsed"))), None)
    if faults is None or busy is None or not busy.value:
        return None
    share = (faults.value or 0.0) * FAULT_S / busy.value
    if share < FAULT_SHARE_MIN:
        return None
    inside = "in the forward loop" if faults.scope == "roi" else "of the whole process"
    return Told(
        f"Page faults {inside} cost about {share_text(min(1.0, share))} of the CPU time: memory is "
        "asked for again and again, or touched for the first time while it is timed.",
        (faults, busy),
        "likely",
    )


def _scenario(stage: Stage) -> Scenario | None:
    try:
        return parse_scenario(stage.scenario)
    except MoeProfError:
        return None


def _level(size: int, caches: list[dict[str, Any]], threads: int) -> Level | None:
    """The nearest level beyond the L1 that holds so much; private L2s taken together."""
    sizes = {
        int(c["level"]): int(c["size_bytes"]) for c in caches if c.get("type") != "Instruction"
    }
    if 2 not in sizes:
        return None
    if size <= sizes[2] * threads:
        return "l2"
    return "l3" if size <= sizes.get(3, 0) else "memory"
