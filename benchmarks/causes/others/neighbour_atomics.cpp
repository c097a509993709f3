// Planted: false_sharing. Atomic counters of two threads that lie side by side.
#include <atomic>
#include <cstdio>
#include <thread>

static std::atomic<long> counters[2];

int main() {
    auto count = [](int me) {
        for (long i = 0; i < 120000000L; ++i) {
            counters[me].fetch_add(1, std::memory_order_relaxed);
        }
    };
    std::thread other(count, 1);
    count(0);
    other.join();
    std::printf("%ld\n", counters[0].load() + counters[1].load());
}
