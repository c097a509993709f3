// Planted: l2_bound. Walks a shuffled linked ring of 64-byte session records, together half the L2
// (at most 1 MiB): next-pointer loads miss L1 and hit L2.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

struct Session {
    Session *next;
    uint64_t id, bytes;
    uint64_t pad[5];
};

int main()
{
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (l2 < 256 * 1024) l2 = 512 * 1024;
    long set = l2 / 2 > (1 << 20) ? (1 << 20) : l2 / 2;
    const size_t n = set / sizeof(Session);
    Session *pool = static_cast<Session *>(std::aligned_alloc(2 << 20, 2 << 20));
    if (!pool) return 1;
    madvise(pool, 2 << 20, MADV_HUGEPAGE);
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    uint32_t s = 4;
    for (size_t i = n - 1; i > 0; i--) {
        s = s * 1664525u + 1013904223u;
        std::swap(order[i], order[(s >> 8) % (i + 1)]);
    }
    for (size_t i = 0; i < n; i++) {
        Session &x = pool[order[i]];
        x.next = &pool[order[(i + 1) % n]];
        x.id = i;
        x.bytes = i * 1500 + 40;
    }
    uint64_t total = 0;
    const Session *p = pool;
    for (long step = 0; step < 600000000; step++) {
        total += p->bytes;
        p = p->next;
    }
    std::printf("checksum %llu\n", (unsigned long long)(total + p->id));
    std::free(pool);
}
