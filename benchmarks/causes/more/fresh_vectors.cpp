// Planted: page_fault_bound. A large vector is made, filled and thrown away in each round.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
    long total = 0;
    for (int r = 0; r < rounds; r++) {
        std::vector<char> fresh(64u << 20, static_cast<char>(r));
        total += fresh[r * 100];
    }
    std::printf("%ld\n", total);
}
