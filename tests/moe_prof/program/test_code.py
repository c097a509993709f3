"""What a loop's instructions say: polling, pointer chains, counters, operands."""

import pytest

from moe_prof.program import code

POLLS = [
    ["mov 0x2e56(%rip),%edx", "cmp %esi,%edx", "jne 11d0 <play+0x20>"],
    ["pause", "sub $0x1,%ecx", "jne 10"],
    ["cmpl $0x0,(%rdi)", "je 10"],
    ["mov $0x1,%eax", "xchg %eax,(%rdi)", "test %eax,%eax", "jne 10"],
    ["mov -0x8(%rbp),%rax", "mov (%rax),%eax", "test %eax,%eax", "je 10"],
    ["nop", "movzbl 0x2eb1(%rip),%eax", "test %al,%al", "je 10"],
]
WORKS = [
    ["imul %rcx,%rax", "add $0x1,%rax", "sub $0x1,%edx", "jne 10"],
    ["mov (%rdi),%al", "add $0x1,%rdi", "test %al,%al", "jne 10"],
    ["mov (%rax),%rax", "test %rax,%rax", "jne 10"],
    ["mov (%rcx,%rdi,8),%rax", "add $1,%rax", "mov %rax,(%rcx,%rdi,8)", "sub $1,%rdx", "jne 10"],
    ["sub $0x1,%eax", "jne 10"],
    ["mov %eax,%ecx", "test %ecx,%ecx", "jne 10"],
]


@pytest.mark.parametrize("texts", POLLS)
def test_polling_loops(texts):
    """Nothing changes in the loop but what others write."""
    assert code.polls(texts)


@pytest.mark.parametrize("texts", WORKS)
def test_working_loops(texts):
    """A value is carried, an address moves, or something is stored."""
    assert not code.polls(texts)


@pytest.mark.parametrize(
    ("follows", "texts"),
    [
        (True, ["mov (%rax),%rax", "sub $0x1,%rdx", "jne 10"]),
        (True, ["mov 0x8(%rcx),%rdx", "mov (%rdx),%rcx", "test %rcx,%rcx", "jne 10"]),
        (True, ["mov (%rdi,%rax,4),%eax", "sub $1,%edx", "jne 10"]),
        (True, ["mov -0x8(%rbp),%rax", "mov (%rax),%rax", "mov %rax,-0x8(%rbp)", "jmp 10"]),
        (False, ["add (%rax),%rdx", "add $0x8,%rax", "cmp %rax,%rcx", "jne 10"]),
        (False, ["mov (%rdi,%rax,8),%rcx", "add (%rsi,%rcx,8),%rdx", "inc %rax", "jne 10"]),
        (False, ["vaddsd (%rax),%xmm0,%xmm0", "add $0x8,%rax", "jne 10"]),
    ],
)
def test_pointer_chains(follows, texts):
    """A load's address comes around the loop from that load itself."""
    assert code.follows_pointers(texts) is follows


@pytest.mark.parametrize(
    ("expected", "texts"),
    [
        ([("rdx", -1, 64)], ["imul %rcx,%rax", "sub $0x1,%rdx", "jne 10"]),
        ([("rdx", -1, 32)], ["sub $0x1,%edx", "jne 10"]),
        ([("rax", 16, 64)], ["movaps (%rax),%xmm0", "add $0x10,%rax", "cmp %rax,%rbx", "jne 10"]),
        ([("rcx", 1, 64)], ["inc %rcx", "jne 10"]),
        ([], ["add $0x1,%rax", "imul %rcx,%rax", "jne 10"]),
        ([], ["add %rbx,%rax", "jne 10"]),
    ],
)
def test_counters(expected, texts):
    """Registers that one instruction changes by a constant."""
    found = [(c.register, c.step, c.bits) for c in code.counters(tuple(texts))]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov %rax,(%rcx,%rdi,8)", (0, "rcx", "rdi", 8, True)),
        ("addq $0x1,0x40(%rax)", (64, "rax", "", 1, True)),
        ("lock incq (%r8)", (0, "r8", "", 1, True)),
        ("mov -0x8(%rbx),%eax", (-8, "rbx", "", 1, False)),
        ("cmp %eax,(%rdi)", (0, "rdi", "", 1, False)),
    ],
)
def test_memory_operands(text, expected):
    """Displacement, base, index, scale, and whether it is written."""
    found = code.memory_operand(text)
    assert (found.displacement, found.base, found.index, found.scale, found.written) == expected


@pytest.mark.parametrize("text", ["mov %rax,%rbx", "mov 0x10(%rsp),%rax", "lea (%rax),%rbx", "nop"])
def test_no_shared_operand(text):
    """Registers, the stack, addresses that are only computed."""
    assert code.memory_operand(text) is None


def test_floats():
    """Arithmetic that can meet denormal numbers; moves cannot."""
    assert code.computes_floats(["vfmadd231ps (%rax),%ymm1,%ymm0"])
    assert code.computes_floats(["mulss %xmm1,%xmm0"])
    assert not code.computes_floats(["movaps (%rax),%xmm0", "imul %rcx,%rax"])


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["or $0x1,%rdi", "xor %edx,%edx", "mov %rsi,%rax", "div %rdi", "add %r8,%rax",
          "mov %rax,%rdi", "jne 10"], True),
        (["mov (%rcx),%rax", "cqto", "idiv %rdi", "add %rax,%rbx", "add $8,%rcx", "jne 10"], False),
        (["mov (%rcx),%rax", "xor %edx,%edx", "div %rdi", "add %rax,%rbx", "jne 10"], False),
        (["vdivsd %xmm1,%xmm2,%xmm3", "vaddsd %xmm3,%xmm1,%xmm1", "jne 1"], True),
        (["sqrtsd %xmm0,%xmm1", "addsd %xmm1,%xmm2", "jne 1"], False),
        (["imul %rcx,%rax", "jne 1"], False),
    ],
)  # fmt: skip
def test_chains_of_divisions(texts, answer):
    """Each waits for the one before; independent ones only for the divider."""
    assert code.divides_in_chain(texts) is answer


@pytest.mark.parametrize(
    ("texts", "walks"),
    [
        (("addsd (%rax),%xmm0", "add $0x8,%rax", "cmp %rdx,%rax", "jne 10"), True),
        (("addsd (%rdi,%rax,8),%xmm0", "add $0x4,%rax", "jne 10"), True),
        (("add (%rax),%rcx", "add $0x1000,%rax", "jne 10"), False),
        (("mov (%rax),%rax", "sub $0x1,%rdx", "jne 10"), False),
        (("mov (%rsi),%rax", "add (%rdi,%rax,8),%rcx", "add $0x8,%rsi", "jne 10"), False),
        (("add $0x1,%rcx", "jne 10"), False),
        (("mov (%rsi),%eax", "test %eax,%eax", "je 10"), False),
    ],
)
def test_walks_go_by_small_steps(texts, walks):
    """Pages at a time, pointers, gathered places and places that stay are no walk."""
    assert code.walks(texts) == walks
