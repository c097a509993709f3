// Planted: spin_bound. A consumer polls a ring buffer that a slow producer seldom fills.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>

static std::atomic<unsigned> head{0}, tail{0};
static double ring[64];

int main()
{
    const unsigned items = 3000;
    double total = 0;
    std::thread consumer([&] {
        for (unsigned i = 0; i < items; i++) {
            while (head.load(std::memory_order_acquire) == i) {
            }
            total += ring[i % 64];
            tail.store(i + 1, std::memory_order_release);
        }
    });
    for (unsigned i = 0; i < items; i++) {
        double value = i;
        for (int k = 0; k < 30000; k++)
            value = std::sqrt(value + k);
        while (i - tail.load(std::memory_order_acquire) == 64) {
        }
        ring[i % 64] = value;
        head.store(i + 1, std::memory_order_release);
    }
    consumer.join();
    std::printf("%g\n", total);
}
