"""Samples with registers: read, and summed up into waiting, work, lines, speeds."""

import time
from dataclasses import replace

import pytest

from moe_prof.collectors.disassembly import Instruction
from moe_prof.kernels.elf import CodeSegment
from moe_prof.program.loops import CodeStretch
from moe_prof.program.placing import in_file
from moe_prof.program.sampling import judge, read, system_kind
from moe_prof.program.speeds import Around, Sample

SCRIPT = """\
 100     500000\x20
\t            11e4 count+0x14 (/tmp/program)
\t            2000 main+0x20 (/tmp/program)
 ABI:2    AX:0x5    CX:0x4080    DI:0x0    R8:0x9
 101     500000\x20
\tffffffff810 do_syscall_64+0x1 ([kernel.kallsyms])

"""
COUNTS = Around(
    0x11E0, ("mov (%rcx,%rdi,8),%rax", "add $0x1,%rax", "mov %rax,(%rcx,%rdi,8)",
             "sub $0x1,%rdx", "jne 11e0"), polls=False,
)  # fmt: skip
POLLS = Around(0x2000, ("mov (%rdi),%eax", "test %eax,%eax", "je 2000"), polls=True)
LOOPS = {("p", 0x11E4): COUNTS, ("p", 0x2001): POLLS}


def one(thread, place=0x11E4, function="f", period_s=0.0, **registers):
    """A sample in the made program."""
    return Sample(thread, function, "p", place, tuple(registers.items()), (), period_s)


def test_reading():
    """Thread, period, innermost frame, callers and whole registers."""
    first, second = read(SCRIPT.splitlines())
    assert (first.thread, first.function, first.address) == (100, "count", 0x11E4)
    assert (first.callers, first.period_s) == (("main",), 0.0005)
    assert dict(first.registers) == {"rax": 5, "rcx": 0x4080, "rdi": 0, "r8": 9}
    assert (second.thread, second.function, second.registers) == (101, "do_syscall_64", ())


def test_waiting_by_loop_and_by_name():
    """A polling loop, and a function that is known to wait."""
    samples = [one(1), one(1, 0x2001), one(1, 0, "futex_wait"), one(1)]
    found = judge(samples, LOOPS)
    assert (found.waiting, found.own_polling, found.work) == (0.5, 0.25, {1: 2})


def test_who_asks_for_the_time_again_and_again_polls():
    """That is a loop of the program; a runtime's waiting is not."""
    clock = [replace(one(1), module="[vdso]", address=0x99)] * 3
    runtime = [replace(one(2), module="/usr/lib/libgomp.so.1", address=0x98)]
    found = judge([*clock, *runtime], {})
    assert (found.waiting, found.own_polling) == (1.0, 0.75)


def test_own_functions_of_the_busiest_thread():
    """Code that only the busiest thread runs is a serial part of its own."""
    samples = [one(1, 0, "collect")] * 60 + [one(1, 0, "work")] * 20 + [one(2, 0, "work")] * 20
    found = judge(samples, {})
    assert (found.own_share, found.busiest) == (0.75, 1.6)


def shared(second_address):
    """Two threads that write to their words."""
    first = one(1, rcx=0x4080, rdi=0, rdx=9)
    second = one(2, rcx=second_address, rdi=0, rdx=9)
    return judge([first, second], LOOPS).shared_lines


def test_lines_that_threads_share():
    """Neighbouring words of one line; the same word is true sharing, another line is none."""
    assert shared(0x4088) == 1.0
    assert shared(0x4080) == 0.0
    assert shared(0x4100) == 0.0


def test_places_that_all_write_are_shared_by_intent():
    """Two neighbouring words, both of them written by both threads."""
    samples = [one(thread, rcx=0x4080 + 8 * word, rdi=0) for thread in (1, 2) for word in (0, 1)]
    assert judge(samples, LOOPS).shared_lines == 0.0


def test_places_of_the_program_itself():
    """Operands relative to the program counter: two functions, two words of one line."""
    loops = {
        ("p", place): Around(place, (f"lock incq {word:#x}(%rip)", "sub $0x1,%rax", "jne 0"), False)
        for place, word in ((0x1378, 0x4078), (0x1398, 0x4070))
    }
    samples = [one(1, 0x1378, rip=0x5500_0000_0000), one(2, 0x1398, rip=0x5500_0000_0000)]
    assert judge(samples, loops).shared_lines == 1.0
    assert judge([replace(s, registers=(("rax", 1),)) for s in samples], loops).shared_lines == 0.0


def test_places_written_by_code_without_a_loop():
    """A called function: the operands of the instructions just before the sample."""
    near = Around(0x1400, (), False, near=("lock xadd %rdx,(%rax)", "mov %rdx,%rcx"))
    samples = [one(1, 0x1400, rax=0x4080), one(2, 0x1400, rax=0x4088)]
    assert judge(samples, {("p", 0x1400): near}).shared_lines == 1.0
    gone = replace(near, near=("lock xadd %rdx,(%rax)", "mov %rdx,%rax", "nop"))
    assert judge(samples, {("p", 0x1400): gone}).shared_lines == 0.0


def test_an_array_that_threads_pass_by_is_not_shared():
    """Each of many places is written once, by one thread after the other."""
    near = Around(0x1400, (), False, near=("mov %rdx,(%rax)",))
    samples = [one(n % 2, 0x1400, rax=0x4000 + 8 * n) for n in range(1, 800)]
    assert judge(samples, {("p", 0x1400): near}).shared_lines == 0.0


def test_where_a_file_lies_in_memory():
    """By the program counter; not in the system, where the user's is of another place."""
    frame = "\t            11e4 count+0x14 (/tmp/program)\n"
    user = f" 100     500000 \n{frame} ABI:2    AX:0x5    IP:0x5555555551e4\n"
    system = f" 100     500000 \n{frame} ABI:2    AX:0x5    IP:0x555555555999\n"
    (first, second) = read((user + system).splitlines())
    assert dict(first.registers) == {"rax": 5, "rip": 0x555555554000}
    assert dict(second.registers) == {"rax": 5}


def test_places_in_a_stripped_file():
    """perf prints where they lie in the file; code and counts go by addresses."""
    segments = (CodeSegment(0x1000, 0x401000, 0x2000),)
    moved = in_file(one(1, 0x1618, rip=0x400000), segments)
    assert (moved.address, dict(moved.registers)) == (0x401618, {"rip": 0})
    same = one(1, 0x401618, rip=0)
    assert in_file(same, segments) == same
    assert in_file(one(1, 0x99999), segments).address == 0x99999


def test_operands_relative_to_the_next_instruction():
    """Their address in the file takes the place of the distance."""
    listing = [
        Instruction(0x1378, "lock addq $0x1,0x2cf7(%rip)", None),
        Instruction(0x1381, "sub $0x1,%rax", None),
        Instruction(0x1385, "jne 1378", 0x1378),
    ]
    loop = CodeStretch(listing).around(0x1381)
    assert loop.texts[0] == "lock addq $0x1,0x4078(%rip)"


def test_speed_of_a_loop():
    """A counting register moves by the iterations between two samples, at full speed."""
    samples = [one(1, period_s=0.001, rcx=1, rdi=2, rdx=10**9 - n * 250_000) for n in range(20)]
    (speed,) = judge(samples, LOOPS).speeds
    assert (speed.start, speed.iterations_per_s, speed.share) == (0x11E0, 250e6, 1.0)


def test_loops_that_take_turns():
    """Two that count by one register are one; another, in a phase of its own, is not."""
    texts = ("movzbl (%rdi),%eax", "add $0x1,%rdi", "jne 11e0")
    loops = {
        ("p", 0x11E4): Around(0x11E0, texts, False),
        ("p", 0x1224): Around(0x1220, texts, False),
        ("p", 0x1304): Around(0x1300, texts, False),
    }
    places = [0x11E4, 0x11E4, 0x1224] * 20 + [0x1304] * 40
    samples = [
        replace(one(1, period_s=0.001, rdi=n * 250_000), address=place)
        for n, place in enumerate(places)
    ]
    found = {speed.start: (speed.share, speed.together) for speed in judge(samples, loops).speeds}
    assert found[0x11E0] == (0.4, 0.6)
    assert found[0x1300] == (0.4, 0.4)


def test_each_access_has_its_own_memory():
    """A register that held something else a moment ago does not count."""
    texts = ("movzbl (%rdi),%eax", "add (%rcx,%rax,4),%rdx", "add $0x1,%rdi", "jne 11e0")
    around = Around(0x11E0, texts, False, near=texts[1:2])
    samples = [
        one(1, period_s=0.001, rcx=1 << 20, rax=n % 8, rdi=(1 << 30) + n * 250_000, rdx=n << 40)
        for n in range(40)
    ]
    (speed,) = judge(samples, {("p", 0x11E4): around}).speeds
    assert [stream.footprint_bytes < 64 for stream in speed.streams] == [False, True]
    assert [stream.lines for stream in speed.streams] == [1 / 64, 1.0]


def test_no_speed_of_a_short_inner_loop():
    """A register that is set again and again differs by anything; the loop around it counts."""
    inner = replace(COUNTS, outer=(Around(0x11D0, ("sub $0x1,%r9", "jne 11d0"), False,
                                          outer_level=True),))  # fmt: skip
    samples = [
        one(1, period_s=0.001, rcx=1, rdi=2, rdx=(n**3 * 7919) % 997, r9=10**6 - 500 * n)
        for n in range(60)
    ]
    (speed,) = judge(samples, {("p", 0x11E4): inner}).speeds
    assert (speed.start, speed.iterations_per_s, speed.innermost) == (0x11D0, 500e3, False)


def test_no_speed_of_a_loop_that_begins_anew():
    """Registers that jump back tell nothing."""
    samples = [one(1, period_s=0.001, rcx=1, rdi=2, rdx=n * 250_000) for n in range(20)]
    assert judge(samples, LOOPS).speeds == ()


def system(*functions):
    """A sample inside the system, with the functions around it, innermost first."""
    return Sample(1, functions[0], "[kernel.kallsyms]", 0, (), functions[1:])


def test_what_the_system_does_for_a_program():
    """By the names on the stack; the innermost alone says nothing."""
    kinds = {
        "fault": system("clear_page_erms", "do_anonymous_page", "exc_page_fault"),
        "call": system("vfs_read", "ksys_read", "do_syscall_64"),
        "yield": system("__schedule", "do_sched_yield", "do_syscall_64"),
        "futex": system("futex_wait", "do_futex", "__x64_sys_futex", "do_syscall_64"),
        "": system("irqentry_exit", "asm_sysvec_apic_timer_interrupt"),
    }
    assert {kind: system_kind(sample) for kind, sample in kinds.items()} == {k: k for k in kinds}
    assert system_kind(one(1, function="do_syscall_64")) == ""
    found = judge(list(kinds.values()), {})
    assert found.system == {"fault": 1, "call": 1, "yield": 1, "futex": 1}
    assert found.waiting == 0.4


def test_a_thread_that_only_waits_belongs_to_the_team():
    """The other one does all the work: twice the mean."""
    samples = [one(7, 0, "reduce")] * 60 + [one(8, 0x2001)] * 50 + [one(8, 0, "work")] * 10
    found = judge(samples, LOOPS)
    assert found.busiest == pytest.approx(12 / 7)
    assert found.main_is_busiest
    assert found.own_share == 1.0


def test_locks_by_name():
    """The library's functions, and the system's part below them."""
    samples = [
        one(1, 0, "pthread_mutex_lock@@GLIBC_2.2.5"), one(1, 0, "do_futex"), one(1, 0, "work"),
        replace(one(2, 0, "futex_hash"), callers=("do_futex", "__GI___lll_lock_wait")),
    ]  # fmt: skip
    assert judge(samples, {}).locking == 0.5


@pytest.mark.parametrize(("one_works", "other_works", "times"), [(15, 5, 1.0), (150, 50, 1.5)])
def test_few_samples_show_no_imbalance(one_works, other_works, times):
    """Where most samples wait, the few that work are divided by chance."""
    samples = [one(1)] * one_works + [one(2)] * other_works + [one(1, 0x2001), one(2, 0x2001)] * 80
    assert judge(samples, LOOPS).busiest == times


def code_of(count):
    """A function of so many instructions in which every second one jumps back to its begin."""
    return CodeStretch([
        Instruction(4 * n, "jne 0" if n % 2 else "add $0x1,%rax", 0 if n % 2 else None)
        for n in range(count)
    ])  # fmt: skip


def test_interpreters_are_no_loops():
    """What goes around in too many instructions is left alone, also around a small loop."""
    assert code_of(6000).around(4 * 5000) is None
    small = code_of(6000).around(4 * 3)
    assert small.texts == ("add $0x1,%rax", "jne 0") * 2
    assert small.outer == ()


def test_loops_of_a_large_function_are_found_fast():
    """Hundreds of addresses in a function of thousands of jumps."""
    large = code_of(6000)
    start_s = time.process_time()
    for address in range(0, 4 * 6000, 60):
        large.around(address)
    assert time.process_time() - start_s < 5.0
