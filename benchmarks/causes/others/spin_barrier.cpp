// Planted: spin_bound. Steps between barriers of std::atomic, in turns long for either thread.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

static std::atomic<unsigned> arrived{0};
static std::atomic<unsigned> generation{0};
constexpr unsigned kTeam = 2;

static void barrier() {
    const unsigned mine = generation.load(std::memory_order_acquire);
    if (arrived.fetch_add(1) + 1 == kTeam) {
        arrived.store(0);
        generation.fetch_add(1, std::memory_order_release);
        return;
    }
    while (generation.load(std::memory_order_acquire) == mine) {
    }
}

static double relax(double x, long steps) {
    for (long i = 0; i < steps; ++i) {
        x = 0.5 * (x + 3.0 / x);
    }
    return x;
}

int main() {
    std::vector<double> results(kTeam * 16);
    std::vector<std::thread> team;
    for (unsigned me = 0; me < kTeam; ++me) {
        team.emplace_back([me, &results] {
            double x = 2.0 + me;
            for (unsigned step = 0; step < 400; ++step) {
                x = relax(x, step % kTeam == me ? 500000 : 20000) + 1;
                barrier();
            }
            results[me * 16] = x;
        });
    }
    for (auto &one : team) {
        one.join();
    }
    std::printf("%g\n", results[0] + results[16]);
}
