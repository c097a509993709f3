/* Planted: dependency_bound. A table-driven CRC: each look-up waits for the one before. */
#include <stdint.h>
#include <stdio.h>

static uint32_t table[256];

int main(void) {
    static unsigned char text[8192];
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t c = i;
        for (int k = 0; k < 8; ++k) {
            c = (c & 1) ? 0xedb88320u ^ (c >> 1) : c >> 1;
        }
        table[i] = c;
    }
    for (int i = 0; i < 8192; ++i) {
        text[i] = (unsigned char)(i * 31);
    }
    uint32_t crc = 0xffffffffu;
    for (int pass = 0; pass < 60000; ++pass) {
        for (int i = 0; i < 8192; ++i) {
            crc = table[(crc ^ text[i]) & 255] ^ (crc >> 8);
        }
    }
    printf("%u\n", crc);
    return 0;
}
