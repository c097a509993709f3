// Planted: serial_bound, imbalance. A slow producer and a consumer that sleeps for its items.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

static std::mutex gate;
static std::condition_variable filled;
static std::deque<uint64_t> queue;
static bool ended = false;

static uint64_t grind(uint64_t x, int steps) {
    for (int i = 0; i < steps; ++i) {
        x = (x ^ (x << 7)) * 0x9e3779b97f4a7c15ULL;
        x ^= x >> 9;
    }
    return x;
}

static void consume(uint64_t *sum) {
    for (;;) {
        std::unique_lock<std::mutex> held(gate);
        filled.wait(held, [] { return ended || !queue.empty(); });
        if (queue.empty()) {
            return;
        }
        const uint64_t item = queue.front();
        queue.pop_front();
        held.unlock();
        *sum += grind(item, 200000);
    }
}

int main() {
    uint64_t sum = 0;
    std::thread consumer(consume, &sum);
    for (uint64_t i = 0; i < 500; ++i) {
        const uint64_t item = grind(i, 2000000);
        std::lock_guard<std::mutex> held(gate);
        queue.push_back(item);
        filled.notify_one();
    }
    {
        std::lock_guard<std::mutex> held(gate);
        ended = true;
    }
    filled.notify_one();
    consumer.join();
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
