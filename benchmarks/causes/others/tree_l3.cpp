// Planted: l3_bound. Nodes of 64 bytes in a random cycle over 6 MiB.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

struct alignas(64) Node {
    int64_t key;
    uint32_t left, right;
};

int main() {
    const uint32_t count = (6u << 20) / sizeof(Node);
    std::vector<Node> nodes(count);
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(11));
    for (uint32_t i = 0; i < count; ++i) {
        nodes[order[i]] = {static_cast<int64_t>(i), order[(i + 1) % count], order[(i + 1) % count]};
    }
    int64_t sum = 0;
    uint32_t here = 0;
    for (long i = 0; i < 40000000L; ++i) {
        sum += nodes[here].key;
        here = nodes[here].left;
    }
    std::printf("%lld\n", static_cast<long long>(sum));
}
