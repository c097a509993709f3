// Carries out SpacemiT's vmadot where the CPU does not, for programs under qemu-user: a handler of
// SIGILL that does the arithmetic and steps over the instruction.
//
// Under qemu-user 7.2 the frame of a signal carries no vector state: the registers still hold the
// program's values, and what the handler leaves in them stays. So this file is compiled without V,
// and touches vector registers only where it says so. On a board's kernel, which restores them from
// the frame, it would do nothing useful; there the instruction itself runs.
//
// vmadot vd, vs1, vs2 (opcode 0x2b, funct3 3, funct7 0x71), registers of 256 bits: vd, vd+1 hold C
// (4, 4) int32, vs1 holds A (4, 8) int8, vs2 holds B (4, 8) int8; C[i, j] += A[i, :] . B[j, :].
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

// So that all of it carries the handler's name, and what it executes is told from the program's work.
#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace {

constexpr unsigned long kBytes = 32; // of a vector register

// Views of a register; a call of memcpy would not carry the handler's name.
typedef int8_t __attribute__((may_alias)) Byte;
typedef int32_t __attribute__((may_alias)) Word;

struct Registers {
    alignas(8) unsigned char bytes[32][kBytes];
};

ALWAYS_INLINE unsigned long vector_bytes() {
    unsigned long bytes;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));
    return bytes;
}

ALWAYS_INLINE void store_all(Registers *registers) {
    __asm__ volatile(".option push\n\t.option arch, +v\n\t"
                     "vs8r.v v0, (%0)\n\tvs8r.v v8, (%1)\n\tvs8r.v v16, (%2)\n\tvs8r.v v24, (%3)\n\t"
                     ".option pop" ::"r"(registers->bytes[0]),
                     "r"(registers->bytes[8]), "r"(registers->bytes[16]),
                     "r"(registers->bytes[24])
                     : "memory");
}

ALWAYS_INLINE void load_all(const Registers *registers) {
    __asm__ volatile(".option push\n\t.option arch, +v\n\t"
                     "vl8re8.v v0, (%0)\n\tvl8re8.v v8, (%1)\n\tvl8re8.v v16, (%2)\n\t"
                     "vl8re8.v v24, (%3)\n\t.option pop" ::"r"(registers->bytes[0]),
                     "r"(registers->bytes[8]), "r"(registers->bytes[16]),
                     "r"(registers->bytes[24])
                     : "memory");
}

[[noreturn]] void refuse(const char *text) {
    const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
    _exit(written < 0 ? 98 : 97);
}

ALWAYS_INLINE void multiply(uint32_t instruction) {
    const unsigned vd = instruction >> 7 & 31, vs1 = instruction >> 15 & 31,
                   vs2 = instruction >> 20 & 31;
    if (vector_bytes() != kBytes || vd % 2 != 0) {
        refuse("ime_emulator: vmadot wants registers of 256 bits and an even vd\n");
    }
    Registers registers;
    store_all(&registers);
    const Byte *a = reinterpret_cast<const Byte *>(registers.bytes[vs1]);
    const Byte *b = reinterpret_cast<const Byte *>(registers.bytes[vs2]);
    Word *c = reinterpret_cast<Word *>(registers.bytes[vd]);
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            for (int k = 0; k < 8; ++k) {
                c[4 * i + j] += a[8 * i + k] * b[8 * j + k];
            }
        }
    }
    load_all(&registers);
}

} // namespace

extern "C" void ime_emulator_trap(int, siginfo_t *, void *context) {
    unsigned long &pc = static_cast<ucontext_t *>(context)->uc_mcontext.__gregs[REG_PC];
    const uint16_t *halves = reinterpret_cast<const uint16_t *>(pc); // aligned to two bytes
    const uint32_t instruction = halves[0] | uint32_t{halves[1]} << 16;
    const bool is_vmadot = (instruction & 0x7f) == 0x2b && (instruction >> 12 & 7) == 3 &&
                           instruction >> 25 == 0x71;
    if (!is_vmadot) {
        refuse("ime_emulator: an illegal instruction that is not vmadot\n");
    }
    multiply(instruction);
    pc += 4;
}

extern "C" __attribute__((constructor)) void ime_emulator_start() {
    struct sigaction action {};
    action.sa_sigaction = ime_emulator_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, nullptr);
}
