/* Planted: instruction_bound. Reverses the bits of many independent words, step by step. */
#include <stdint.h>
#include <stdio.h>

static uint32_t reverse(uint32_t v)
{
    v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
    v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
    v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
    v = ((v >> 8) & 0x00ff00ffu) | ((v & 0x00ff00ffu) << 8);
    return (v >> 16) | (v << 16);
}

int main(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 500000000u; i++)
        sum += reverse(i);
    printf("%u\n", sum);
    return 0;
}
