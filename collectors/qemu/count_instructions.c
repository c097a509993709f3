/* Plugin of qemu-user: instructions executed between two functions, by phase, kind and symbol.
 *
 * Options: out=FILE; begin=PREFIX, end=PREFIX, mark=PREFIX of functions' symbols. Counting is over
 * when `end` is entered; what was executed before `begin` was left is taken off. A phase goes from
 * the call of its mark, whose symbol is the prefix and the phase's name, to that of the next one.
 * FILE gets one line `count kind phase symbol` each; the phase is `none` before the first mark.
 *
 * Source: QEMU's docs/devel/tcg-plugins and the exported functions of API version 1 (QEMU 6.1 and
 * later), declared here because Debian packages no header; the RISC-V Instruction Set Manual,
 * volume 1, for the opcodes. The counters are only right for programs of one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { INLINE_ADD_U64 = 0, NO_REGISTERS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
                                           void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *,
                                            void (*)(unsigned int, void *), int flags, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int op, void *,
                                                uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);

EXPORT int qemu_plugin_version = 1;

enum { SLOTS = 1 << 15, SYMBOL_BYTES = 160 };

enum { PHASES = 16, PHASE_BYTES = 32 };

struct slot {
    const char *kind; /* NULL: free */
    char symbol[SYMBOL_BYTES];
    uint64_t count;          /* so far, by the emulator */
    uint64_t settled;        /* part of it that belongs to a phase already, or came before */
    uint64_t inside[PHASES]; /* in the region, by phase */
};

static struct slot slots[SLOTS];
static struct slot *used[SLOTS]; /* those that are not free */
static size_t used_count;
static char phases[PHASES][PHASE_BYTES] = {"none"};
static size_t phase_count = 1, phase; /* phase: the one that goes on */
static char out_file[4096];
static char begin_symbol[SYMBOL_BYTES], end_symbol[SYMBOL_BYTES], mark_symbol[SYMBOL_BYTES];
static bool begun, ended, overflowed;

/* Of the base encoding's major opcodes and the vector extension's; 16-bit instructions by quadrant. */
static const char *kind_of(const uint8_t *bytes, size_t size) {
    if (size == 2) {
        const unsigned word = bytes[0] | bytes[1] << 8, top = word >> 13, quadrant = word & 3;
        if (quadrant == 0) {
            return top == 0 ? "integer" : top < 4 ? "load" : "store";
        }
        if (quadrant == 1) {
            return top < 5 ? "integer" : top == 5 ? "jump" : "branch";
        }
        if (top == 4) { /* jr, jalr, mv, add */
            return (word >> 2 & 31) == 0 && (word >> 7 & 31) != 0 ? "jump" : "integer";
        }
        return top == 0 ? "integer" : top < 4 ? "load" : "store";
    }
    const uint32_t word = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    const unsigned width = word >> 12 & 7;
    switch (word & 0x7f) {
    case 0x03:
        return "load";
    case 0x23:
        return "store";
    case 0x07: /* funct3 1..4: scalar floating point; 0, 5, 6, 7: vectors */
        return width >= 1 && width <= 4 ? "load" : "vector_load";
    case 0x27:
        return width >= 1 && width <= 4 ? "store" : "vector_store";
    case 0x57:
        return width == 7 ? "vector_configuration" : "vector_arithmetic";
    case 0x2b:
        return "matrix";
    case 0x63:
        return "branch";
    case 0x67:
    case 0x6f:
        return "jump";
    case 0x43:
    case 0x47:
    case 0x4b:
    case 0x4f:
    case 0x53:
        return "float";
    default:
        return "integer";
    }
}

static struct slot *slot_of(const char *symbol, const char *kind) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (const char *c = symbol; *c != '\0'; ++c) {
        hash = (hash ^ (uint8_t)*c) * 0x100000001B3u;
    }
    hash ^= (uintptr_t)kind;
    for (size_t i = 0; i < SLOTS; ++i) {
        struct slot *slot = &slots[(hash + i) % SLOTS];
        if (slot->kind == NULL) {
            slot->kind = kind;
            strncpy(slot->symbol, symbol, SYMBOL_BYTES - 1);
            used[used_count++] = slot;
            return slot;
        }
        if (slot->kind == kind && strncmp(slot->symbol, symbol, SYMBOL_BYTES - 1) == 0) {
            return slot;
        }
    }
    overflowed = true;
    return &slots[0];
}

/* All that was executed since the last mark belongs to the phase that goes on. */
static void settle(void) {
    const bool inside = begun && !ended;
    for (size_t i = 0; i < used_count; ++i) {
        struct slot *slot = used[i];
        if (inside) {
            slot->inside[phase] += slot->count - slot->settled;
        }
        slot->settled = slot->count;
    }
}

static void on_begin(unsigned int cpu, void *unused) {
    (void)cpu;
    (void)unused;
    begun = false; /* until the last instruction of the function: nothing before it counts */
    settle();
    phase = 0;
    begun = true;
}

static void on_end(unsigned int cpu, void *unused) {
    (void)cpu;
    (void)unused;
    if (begun && !ended) {
        settle();
        ended = true;
    }
}

static void on_mark(unsigned int cpu, void *number) {
    (void)cpu;
    if (begun && !ended) {
        settle();
    }
    phase = (size_t)(uintptr_t)number;
}

static size_t phase_of(const char *name) {
    for (size_t i = 0; i < phase_count; ++i) {
        if (strcmp(phases[i], name) == 0) {
            return i;
        }
    }
    if (phase_count == PHASES || strlen(name) >= PHASE_BYTES) {
        overflowed = true;
        return 0;
    }
    strcpy(phases[phase_count], name);
    return phase_count++;
}

static bool begins_with(const char *symbol, const char *prefix) {
    return prefix[0] != '\0' && strncmp(symbol, prefix, strlen(prefix)) == 0;
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    const size_t count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < count; ++i) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        const char *symbol = qemu_plugin_insn_symbol(instruction);
        symbol = symbol == NULL ? "" : symbol;
        if (begins_with(symbol, begin_symbol)) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_begin, NO_REGISTERS, NULL);
        } else if (i == 0 && begins_with(symbol, end_symbol)) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_end, NO_REGISTERS, NULL);
        } else if (i == 0 && begins_with(symbol, mark_symbol)) {
            const size_t number = phase_of(symbol + strlen(mark_symbol));
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS,
                                                   (void *)(uintptr_t)number);
        }
        const char *kind =
            kind_of(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction));
        qemu_plugin_register_vcpu_insn_exec_inline(instruction, INLINE_ADD_U64,
                                                   &slot_of(symbol, kind)->count, 1);
    }
}

static void on_exit_of_program(qemu_plugin_id_t id, void *unused) {
    (void)id;
    (void)unused;
    FILE *out = fopen(out_file, "w");
    if (out == NULL) {
        return;
    }
    for (size_t i = 0; ended && !overflowed && i < used_count; ++i) {
        for (size_t p = 0; p < phase_count; ++p) {
            if (used[i]->inside[p] != 0) {
                fprintf(out, "%llu %s %s %s\n", (unsigned long long)used[i]->inside[p],
                        used[i]->kind, phases[p], used[i]->symbol);
            }
        }
    }
    fputs(ended && !overflowed ? "complete\n" : "incomplete\n", out);
    fclose(out);
}

static bool take(const char *argument, const char *name, char *value, size_t size) {
    const size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0 || strlen(argument + length) >= size) {
        return false;
    }
    strcpy(value, argument + length);
    return true;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; ++i) {
        if (!take(argv[i], "out=", out_file, sizeof out_file) &&
            !take(argv[i], "begin=", begin_symbol, sizeof begin_symbol) &&
            !take(argv[i], "end=", end_symbol, sizeof end_symbol) &&
            !take(argv[i], "mark=", mark_symbol, sizeof mark_symbol)) {
            fprintf(stderr, "count_instructions: unknown option %s\n", argv[i]);
            return 1;
        }
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
    return 0;
}
