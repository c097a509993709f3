"""What a program's threads do to each other: queue, take turns, wait, poll, share lines.

Each rule gives a verdict or None; program_verdict says in which order they are asked.
"""

from __future__ import annotations

from moe_prof.analysis.program_demands import ProgramEvidence
from moe_prof.analysis.verdict import Verdict
from moe_prof.units import count_text, digits_text, share_text, time_text

BLOCKED_OF_IDLE_MIN = 0.5
"""Of the time in which threads are not ready to run, what they must spend in locks."""
ONE_MOST, IDLE_CPUS_MIN = 1.25, 0.5
TURNS_PER_S = 20.0
ONE_TOLERANCE, SIGNS_MIN = 0.15, 0.03
WAITING_MIN = 0.25
YIELDING_MIN = 0.1
"""Who yields shows less of its waiting where other programs take the CPU."""
QUEUE_MIN = 1.2
LONG_QUEUE_MIN = 3.0
"""Threads that are ready to run, a CPU: no lock has so many who could get on."""
SPELLS_MIN, SPELL_MIN_S = 3, 1e-4
"""Less is a timer."""
SPELLS_OVER_MIN = 0.3
"""Of the run, from the first to the last: a pool that nobody uses polls for a while at first."""
CROWDED_MOST, LOCKED_MIN, LOCKS_MOST = 1.5, 0.1, 0.5
SINGLE_MIN = 0.3
SERIAL_MIN = 0.5
IMBALANCE_MIN = 1.2
ALONE_MIN = 0.95
"""Of a team's work, what one thread does where the others do nothing but wait for it."""
ALL_POLL_MARGIN = 0.15
SHARED_LINE_MIN = 0.3
LOCK_ADVICE = "hold locks for less time, or give each thread data of its own"


def one_by_one(e: ProgramEvidence) -> Verdict | None:
    """Threads that are all ready to run, of which one runs, while a CPU is idle.

    The system wakes a thread where the one runs that woke it: who takes turns queues there.
    """
    if not _taking_one_cpu(e) or (e.idle_cpus or 0.0) < IDLE_CPUS_MIN or _long_queue(e):
        return None
    return Verdict(
        "serial_bound",
        f"{digits_text(e.runnable)} of its {e.active_threads} busy threads are ready to run, but "
        f"they use {e.cpu_s / e.wall_s:.2f} CPUs while {e.idle_cpus:.2f} are idle, and slept "
        f"{count_text(e.voluntary)} times: one at a time gets on",
        LOCK_ADVICE,
    )


def crowded_out(e: ProgramEvidence) -> Verdict | None:
    """The same where no CPU is idle: other programs may be why."""
    if not _taking_one_cpu(e) or e.idle_cpus is None:
        return None
    return Verdict(
        "unknown",
        f"its {e.active_threads} busy threads use {e.cpu_s / e.wall_s:.2f} CPUs and slept "
        f"{count_text(e.voluntary)} times: they may take turns, or others leave them no more",
        "run it again while nothing else runs",
    )


def _taking_one_cpu(e: ProgramEvidence) -> bool:
    """Whether several threads that sleep again and again get one CPU between them."""
    return (
        e.team > 1
        and e.cpu_s <= ONE_MOST * e.wall_s
        and e.runnable >= (1 - WAITING_MIN) * e.team
        and e.voluntary >= TURNS_PER_S * e.wall_s
    )


def _long_queue(e: ProgramEvidence) -> bool:
    """Whether far more threads want to run than there are CPUs, wherever they are let run."""
    return e.most_threads > e.cpus and e.runnable >= LONG_QUEUE_MIN * e.cpus


def crowded_lock(e: ProgramEvidence) -> Verdict | None:
    """More threads than CPUs, some of them asleep in locks, or most of their samples there."""
    if min(e.active_threads, e.most_threads) <= e.cpus:
        return None
    if e.locking >= LOCKS_MOST:
        return Verdict(
            "serial_bound",
            f"{share_text(e.locking)} of the samples of its {e.active_threads} busy threads are in "
            f"locks, on {e.cpus} CPUs: one at a time gets on",
            LOCK_ADVICE,
        )
    few = e.runnable < CROWDED_MOST * e.cpus
    if not few or (e.blocked or 0.0) < LOCKED_MIN:
        return None
    if e.runnable / e.team <= 1 - WAITING_MIN:
        return None  # CPUs stay free: the locks alone
    return Verdict(
        "unknown",
        f"{e.active_threads} busy threads share {e.cpus} CPUs and sleep in locks "
        f"{share_text(e.blocked)} of the time: which of the two costs more cannot be told",
        f"run it with {e.cpus} threads",
    )


def oversubscribed(e: ProgramEvidence) -> Verdict | None:
    """More threads than CPUs want to run."""
    if min(e.active_threads, e.most_threads) <= e.cpus or e.runnable < QUEUE_MIN * e.cpus:
        return None
    if e.idle_cpus is not None and _taking_one_cpu(e) and not _long_queue(e):
        return crowded_out(e)
    return Verdict(
        "oversubscribed",
        f"{digits_text(e.runnable)} of its {e.active_threads} busy threads want to run at a time, "
        f"on {e.cpus} CPUs",
        f"use {e.cpus} threads",
    )


def only_polling(e: ProgramEvidence) -> Verdict | None:
    """One thread does all the work; a part in which they all work would show the others' share."""
    if e.own_polling < WAITING_MIN or e.team < 2 or e.busiest < ALONE_MIN * e.team:
        return None
    return Verdict(
        "spin_bound",
        f"{share_text(e.own_polling)} of the samples are in loops of the program that only poll; "
        "one thread works, the others do nothing else",
        "let them sleep until there is work, or give them some of it",
    )


def waiting(e: ProgramEvidence) -> Verdict | None:
    """Threads that are idle or poll: for a serial part, for the busiest, for each other."""
    if e.active_threads < 2 and (e.polling or 0.0) < WAITING_MIN:
        return None
    idle = max(0.0, 1 - min(1.0, e.runnable / e.team)) if e.team > 1 else 0.0
    polling = (e.polling or 0.0) * (1 - idle)
    least = YIELDING_MIN if e.yielding >= YIELDING_MIN else WAITING_MIN
    if idle + polling < least:
        return None
    text = f"its threads wait {share_text(idle + polling)} of their time"
    most = 1 - 1 / max(1, e.active_threads) + ALL_POLL_MARGIN  # as long as one of them works
    all_poll = e.own_polling * (1 - idle) > most
    uneven = e.busiest >= IMBALANCE_MIN and not all_poll
    serial = e.main_is_busiest and (e.own_share or 0.0) >= SERIAL_MIN and uneven
    if e.single_share >= SINGLE_MIN or serial:
        return Verdict(
            "serial_bound",
            f"{text}; one thread works alone meanwhile, in code of its own",
            "make the serial part parallel, or shorter",
        )
    if uneven:
        return Verdict(
            "imbalance",
            f"{text}; the busiest works {e.busiest:.2f} times the mean",
            "divide the work evenly, or schedule it dynamically",
        )
    if polling < least:
        return _taking_turns(e, idle, text)
    return _polling(e, text, nobody_works=idle + polling > most)


def _polling(e: ProgramEvidence, text: str, *, nobody_works: bool) -> Verdict:
    """Threads of equal work that wait on their CPUs; for a lock, one of them would be working."""
    if e.locking >= WAITING_MIN and e.locking > e.own_polling and not nobody_works:
        return Verdict(
            "serial_bound",
            f"{text}; {share_text(e.locking)} of the samples are in locks: one at a time gets on",
            LOCK_ADVICE,
        )
    own = 2 * e.own_polling >= (e.polling or 0.0)
    place, verb = ("loops", "poll") if own else ("code", "waits")
    return Verdict(
        "spin_bound",
        f"{text}; {share_text(e.polling)} of the samples are in {place} that only {verb}",
        "give threads more work between waits, or let them sleep",
    )


def _taking_turns(e: ProgramEvidence, idle: float, text: str) -> Verdict | None:
    """Threads of equal work that sleep in locks: one at a time gets on.

    Looks from outside see short sleeps seldom. Where just one thread is ready at a time, on
    average, signs of locks are enough.
    """
    asleep = (e.blocked or 0.0) >= BLOCKED_OF_IDLE_MIN * idle
    locks = max(e.blocked or 0.0, e.locking) >= SIGNS_MIN
    turns = e.voluntary >= TURNS_PER_S * e.wall_s and abs(e.runnable - 1) <= ONE_TOLERANCE
    if e.active_threads < 2 or not (asleep or (locks and turns)):
        return None
    return Verdict(
        "serial_bound",
        f"{text}, asleep in locks: {digits_text(e.runnable)} of {e.active_threads} run at a time",
        LOCK_ADVICE,
    )


def helped_seldom(e: ProgramEvidence) -> Verdict | None:
    """A team that is given work now and then, and sleeps while one thread works alone."""
    if e.cpus < 2 or e.active_threads > 1 or e.spells < SPELLS_MIN:
        return None
    if e.spells_s < SPELL_MIN_S * e.spells or e.spells_over < SPELLS_OVER_MIN:
        return None
    return Verdict(
        "serial_bound",
        f"its other threads worked {count_text(e.spells)} times, {time_text(e.spells_s)} in all, "
        f"and slept for the rest of {time_text(e.wall_s)}: one thread works alone",
        "make the serial part parallel, or shorter",
    )


def shared_line(e: ProgramEvidence) -> Verdict | None:
    """Threads that write to places of their own in one line."""
    if e.shared_line is None or e.shared_line < SHARED_LINE_MIN:
        return None
    return Verdict(
        "false_sharing",
        f"{share_text(e.shared_line)} of the samples are in loops of several threads that write to "
        "different places of the same cache line",
        "give each thread's data a line of its own: pad to 64 or 128 bytes",
    )
