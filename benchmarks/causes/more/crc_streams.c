/* Planted: port_bound. Eight independent CRCs at once: the one CRC unit is always busy. */
/* Build: -O2 -msse4.2 */
#include <nmmintrin.h>
#include <stdio.h>

int main(void)
{
    unsigned long long c[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    unsigned long long a = c[0], b = c[1], d = c[2], e = c[3], f = c[4], g = c[5], h = c[6], k = c[7];
    for (unsigned long long i = 0; i < 500000000; i++) {
        a = _mm_crc32_u64(a, i);
        b = _mm_crc32_u64(b, i);
        d = _mm_crc32_u64(d, i);
        e = _mm_crc32_u64(e, i);
        f = _mm_crc32_u64(f, i);
        g = _mm_crc32_u64(g, i);
        h = _mm_crc32_u64(h, i);
        k = _mm_crc32_u64(k, i);
    }
    printf("%llu\n", a ^ b ^ d ^ e ^ f ^ g ^ h ^ k);
    return 0;
}
