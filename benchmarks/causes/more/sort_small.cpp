// Planted: branch_bound. std::sort of random numbers.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

int main()
{
    std::mt19937 random(7);
    std::vector<unsigned> original(50000), copy;
    for (auto &x : original)
        x = random();
    unsigned check = 0;
    for (int round = 0; round < 400; round++) {
        copy = original;
        std::sort(copy.begin(), copy.end());
        check += copy[round];
    }
    std::printf("%u\n", check);
}
