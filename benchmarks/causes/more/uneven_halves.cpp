// Planted: imbalance. Two threads; one gets seven eighths of the numbers to test.
#include <cstdio>
#include <thread>

static bool is_prime(unsigned n)
{
    if (n % 2 == 0)
        return n == 2;
    for (unsigned d = 3; d * d <= n; d += 2)
        if (n % d == 0)
            return false;
    return n > 1;
}

static void count(unsigned from, unsigned to, long *result)
{
    long found = 0;
    for (unsigned n = from; n < to; n++)
        found += is_prime(n);
    *result = found;
}

int main()
{
    const unsigned all = 8000000;
    long first = 0, second = 0;
    std::thread a(count, 0u, all / 8, &first);
    std::thread b(count, all / 8, all, &second);
    a.join();
    b.join();
    std::printf("%ld\n", first + second);
}
