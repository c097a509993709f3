// Planted: too_short. Sieves the primes below ten thousand, once.
#include <cstdio>
#include <vector>

int main()
{
    std::vector<bool> composite(10000);
    int count = 0;
    for (int i = 2; i < 10000; i++) {
        if (composite[i])
            continue;
        count++;
        for (int j = i * i; j < 10000; j += i)
            composite[j] = true;
    }
    std::printf("%d\n", count);
}
