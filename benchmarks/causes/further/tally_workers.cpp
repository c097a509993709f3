// Planted: false_sharing. Each thread bumps its own counters, but the counters of all threads lie
// side by side in one array: the cache line goes back and forth.
#include <pthread.h>
#include <sched.h>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

struct Tally { std::atomic<uint32_t> hits{0}, bytes{0}; };

/* keep each worker on a CPU of its own */
static void pin(unsigned which)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    which %= static_cast<unsigned>(CPU_COUNT(&all));
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all) && which-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(c, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
}

int main()
{
    unsigned team = std::thread::hardware_concurrency();
    if (team < 2) team = 2;
    if (team > 4) team = 4;
    alignas(64) static Tally tally[8];
    auto work = [&](unsigned id) {
        pin(id);
        Tally &t = tally[id];
        uint32_t s = id + 1;
        for (long i = 0; i < 50000000; i++) {
            s = s * 1664525u + 1013904223u;
            t.hits.fetch_add(1, std::memory_order_relaxed);
            t.bytes.fetch_add(s >> 24, std::memory_order_relaxed);
        }
    };
    std::vector<std::thread> th;
    for (unsigned i = 0; i < team; i++) th.emplace_back(work, i);
    for (auto &t : th) t.join();
    uint64_t sum = 0;
    for (unsigned i = 0; i < team; i++) sum = sum * 31 + tally[i].hits + 7 * tally[i].bytes;
    std::printf("checksum %llu\n", (unsigned long long)sum);
}
