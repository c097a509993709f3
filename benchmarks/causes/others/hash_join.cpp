// Planted: dram_latency_bound. Random probes into a hash table of 512 MiB.
#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
    const uint64_t slots = 1ULL << 25;
    std::vector<uint64_t> keys(slots), values(slots);
    for (uint64_t i = 0; i < slots; ++i) {
        keys[i] = i * 3;
        values[i] = i;
    }
    uint64_t x = 88172645463325252ULL, sum = 0;
    for (long i = 0; i < 40000000L; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        const uint64_t slot = (x * 0x9e3779b97f4a7c15ULL) >> 39;
        sum += keys[slot] ^ values[slot];
    }
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
