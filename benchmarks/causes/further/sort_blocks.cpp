// Planted: branch_bound. Hand-written quicksort of fresh random blocks of 2048 ints (8 KiB, in L1):
// the comparisons go either way by chance, so branch mispredictions dominate.
#include <cstdint>
#include <cstdio>
#include <utility>

static void quick(int32_t *a, int lo, int hi)
{
    while (hi - lo > 8) {
        int32_t p = a[lo + (hi - lo) / 2];
        int i = lo - 1, j = hi + 1;
        for (;;) {
            do i++; while (a[i] < p);
            do j--; while (a[j] > p);
            if (i >= j) break;
            std::swap(a[i], a[j]);
        }
        if (j - lo < hi - j) { quick(a, lo, j); lo = j + 1; }
        else { quick(a, j + 1, hi); hi = j; }
    }
    for (int i = lo + 1; i <= hi; i++) {
        int32_t v = a[i];
        int j = i;
        while (j > lo && a[j - 1] > v) { a[j] = a[j - 1]; j--; }
        a[j] = v;
    }
}

int main()
{
    const int n = 2048, blocks = 20000;
    static int32_t block[n];
    uint64_t s = 0x9E3779B97F4A7C15ull, sum = 0;
    for (int b = 0; b < blocks; b++) {
        for (int i = 0; i < n; i++) {
            s ^= s << 13; s ^= s >> 7; s ^= s << 17;
            block[i] = (int32_t)(s >> 32);
        }
        quick(block, 0, n - 1);
        sum = sum * 31 + (uint32_t)block[n / 2] + (uint32_t)block[b % n];
    }
    std::printf("checksum %llx\n", (unsigned long long)sum);
}
