// Planted: spin_bound. Threads update one index under a fair ticket spin lock whose critical
// section is all of their work: at any time one works and the rest burn CPU in the lock.
#include <pthread.h>
#include <sched.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

class TicketLock {
    alignas(64) std::atomic<unsigned> next{0};
    alignas(64) std::atomic<unsigned> serving{0};
public:
    void lock()
    {
        unsigned me = next.fetch_add(1, std::memory_order_relaxed);
        while (serving.load(std::memory_order_acquire) != me)
            __builtin_ia32_pause();
    }
    void unlock()
    {
        serving.store(serving.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
};

static TicketLock guard;
static uint64_t table[256];

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

static void rebuild_many(unsigned id, long ops)
{
    pin(id);
    for (long i = 0; i < ops; i++) {
        guard.lock();
        for (int k = 0; k < 300000; k++)
            table[(k * 7) & 255] += static_cast<uint64_t>(k) ^ (table[k & 255] >> 7);
        guard.unlock();
    }
}

int main()
{
    unsigned team = std::min(4u, std::max(2u, std::thread::hardware_concurrency()));
    const long total = 9000;
    std::vector<std::thread> th;
    for (unsigned t = 0; t < team; t++)
        th.emplace_back(rebuild_many, t, total / team);
    for (auto &t : th) t.join();
    uint64_t sum = 0;
    for (uint64_t v : table) sum = sum * 31 + v;
    std::printf("checksum %llx\n", (unsigned long long)sum);
}
