// Planted: false_sharing. Each thread keeps its statistics in an element of one small array.
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

struct Statistics {
    volatile uint64_t hits;
    volatile uint64_t misses;
};
static Statistics statistics[2];

static void classify(int me) {
    uint32_t x = 2463534242u + static_cast<uint32_t>(me);
    for (long i = 0; i < 250000000L; ++i) {
        x = x * 1664525u + 1013904223u;
        statistics[me].hits = statistics[me].hits + (x >> 31);
        statistics[me].misses = statistics[me].misses + 1 - (x >> 31);
    }
}

int main() {
    std::vector<std::thread> team;
    for (int me = 0; me < 2; ++me) {
        team.emplace_back(classify, me);
    }
    for (auto &one : team) {
        one.join();
    }
    std::printf("%llu\n", static_cast<unsigned long long>(statistics[0].hits + statistics[1].hits));
}
