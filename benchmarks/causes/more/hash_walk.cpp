// Planted: dram_latency_bound. Each look-up in a large hash table gives the key of the next.
#include <cstdint>
#include <cstdio>
#include <vector>

struct Slot {
    std::uint64_t key, value;
};

static std::uint64_t mix(std::uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    return x;
}

int main()
{
    const std::uint64_t size = 1u << 24, entries = size / 2;
    std::vector<Slot> table(size, Slot{0, 0});
    for (std::uint64_t i = 1; i <= entries; i++) {
        std::uint64_t at = mix(i) % size;
        while (table[at].key)
            at = (at + 1) % size;
        table[at] = {i, (i * 7919) % entries + 1};
    }
    std::uint64_t key = 1;
    for (int i = 0; i < 4000000; i++) {
        std::uint64_t at = mix(key) % size;
        while (table[at].key != key)
            at = (at + 1) % size;
        key = table[at].value ^ (i & 1) ? table[at].value : 1;
    }
    std::printf("%lu\n", (unsigned long)key);
}
