// Planted: l3_bound. A permutation of eight megabytes followed cycle by cycle.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

int main(int argc, char **argv)
{
    const std::size_t bytes = (argc > 1 ? std::atoi(argv[1]) : 8) * 1024ul * 1024ul;
    std::vector<unsigned> next(bytes / sizeof(unsigned));
    std::iota(next.begin(), next.end(), 0u);
    std::mt19937 random(5);
    for (std::size_t i = next.size() - 1; i > 0; i--)
        std::swap(next[i], next[random() % i]);
    unsigned at = 0;
    for (long i = 0; i < 15000000; i++)
        at = next[at];
    std::printf("%u\n", at);
}
