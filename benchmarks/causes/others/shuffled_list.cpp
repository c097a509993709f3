// Planted: dram_latency_bound. A linked list whose nodes lie in random order in 384 MiB.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

struct Node {
    Node *next;
    long value;
    char rest[80];
};

int main() {
    const std::size_t count = 4u << 20;
    std::vector<Node> nodes(count);
    std::vector<unsigned> order(count);
    for (std::size_t i = 0; i < count; ++i) {
        order[i] = static_cast<unsigned>(i);
    }
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    for (std::size_t i = 0; i < count; ++i) {
        nodes[order[i]].next = &nodes[order[(i + 1) % count]];
        nodes[order[i]].value = static_cast<long>(i);
    }
    long sum = 0;
    const Node *here = &nodes[order[0]];
    for (long i = 0; i < 20000000L; ++i) {
        sum += here->value;
        here = here->next;
    }
    std::printf("%ld\n", sum);
}
