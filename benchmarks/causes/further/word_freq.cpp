// Planted: too_short. Counts the words of a small generated text in a map: done within a few
// milliseconds.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

int main()
{
    std::map<std::string, int> freq;
    uint32_t s = 1;
    for (int i = 0; i < 8000; i++) {
        s = s * 1664525u + 1013904223u;
        std::string w;
        for (uint32_t v = (s >> 16) % 500 + 1; v; v /= 26) w += static_cast<char>('a' + v % 26);
        freq[w]++;
    }
    uint64_t sum = 0;
    for (const auto &f : freq) sum = sum * 31 + static_cast<uint64_t>(f.second) + f.first.size();
    std::printf("checksum %llu\n", (unsigned long long)sum);
}
