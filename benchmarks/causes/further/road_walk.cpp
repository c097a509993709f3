// Planted: l3_bound. Random walk on a road graph of 64-byte nodes (4 L2 sizes and at least 3 MiB):
// the next node comes out of the present one, each step misses L2 and hits L3.
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

struct Node {
    uint32_t neighbour[8];
    uint32_t visits;
    uint32_t pad[7];
};

int main()
{
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (l2 <= 0) l2 = 512 * 1024;
    long l3k = 0;
    std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> l3k;
    long l3 = l3k > 0 ? l3k * 1024 : 32L << 20;
    long set = std::min(std::max(4 * l2, 3L << 20), l3 / 3);
    const uint32_t n = static_cast<uint32_t>(set / sizeof(Node));
    size_t cap = (static_cast<size_t>(set) + (2 << 20)) & ~static_cast<size_t>((2 << 20) - 1);
    Node *g = static_cast<Node *>(std::aligned_alloc(2 << 20, cap));
    if (!g) return 1;
    madvise(g, cap, MADV_HUGEPAGE);
    uint64_t s = 11;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t &e : g[i].neighbour) {
            s ^= s << 13; s ^= s >> 7; s ^= s << 17;
            e = static_cast<uint32_t>((s >> 32) % n);
        }
        g[i].visits = 0;
    }
    uint32_t at = 0, dice = 1;
    for (long step = 0; step < 110000000; step++) {
        dice = dice * 1664525u + 1013904223u;
        at = g[at].neighbour[dice >> 29];
        g[at].visits++;
    }
    uint64_t sum = at;
    for (uint32_t i = 0; i < n; i++) sum = sum * 31 + g[i].visits;
    std::printf("checksum %llu\n", (unsigned long long)sum);
    std::free(g);
}
