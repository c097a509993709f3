// Planted: spin_bound. A test-and-set lock around nearly all of the work of two threads.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>

static std::atomic_flag lock = ATOMIC_FLAG_INIT;
static uint64_t table[512];

static void update(uint64_t seed) {
    for (int i = 0; i < 400000; ++i) {
        while (lock.test_and_set(std::memory_order_acquire)) {
        }
        for (int j = 0; j < 40; ++j) {
            seed = seed * 2862933555777941757ULL + 3037000493ULL;
            table[seed >> 55] += seed;
        }
        lock.clear(std::memory_order_release);
    }
}

int main() {
    std::thread other([] {
        for (uint64_t round = 0; round < 20; ++round) {
            update(round + 7);
        }
    });
    for (int round = 0; round < 20; ++round) {
        update(static_cast<uint64_t>(round));
    }
    other.join();
    std::printf("%llu\n", static_cast<unsigned long long>(table[3]));
}
