// Planted: too_short. Writes the roman numerals up to 3999 into a buffer once and hashes them: over
// in about a millisecond.
#include <stdint.h>
#include <stdio.h>

int main(void)
{
    static const struct { int v; const char *s; } unit[] = {
        {1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"},
        {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}};
    uint32_t h = 2166136261u;
    for (int n = 1; n < 4000; n++) {
        int left = n;
        for (unsigned u = 0; u < sizeof unit / sizeof *unit; u++)
            while (left >= unit[u].v) {
                for (const char *c = unit[u].s; *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
                left -= unit[u].v;
            }
    }
    printf("checksum %08x\n", h);
    return 0;
}
