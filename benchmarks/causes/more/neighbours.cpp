// Planted: false_sharing. Each thread has a counter of its own; the counters are neighbours.
#include <atomic>
#include <cstdio>
#include <thread>

struct Counters {
    std::atomic<long> a{0}, b{0};
};

int main()
{
    static Counters counters;
    const long times = 200000000;
    std::thread first([&] {
        for (long i = 0; i < times; i++)
            counters.a.fetch_add(1, std::memory_order_relaxed);
    });
    std::thread second([&] {
        for (long i = 0; i < times; i++)
            counters.b.fetch_add(1, std::memory_order_relaxed);
    });
    first.join();
    second.join();
    std::printf("%ld\n", counters.a + counters.b);
}
