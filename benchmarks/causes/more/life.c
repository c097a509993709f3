/* Planted: instruction_bound. Conway's game of life on a small board of bytes, written plainly. */
/* Build: -O2 -fno-tree-vectorize -g */
#include <stdio.h>
#include <stdlib.h>

#define SIDE 100

static unsigned char board[SIDE + 2][SIDE + 2], next[SIDE + 2][SIDE + 2];

static void step(void)
{
    for (int y = 1; y <= SIDE; y++)
        for (int x = 1; x <= SIDE; x++) {
            int n = board[y - 1][x - 1] + board[y - 1][x] + board[y - 1][x + 1] + board[y][x - 1] +
                    board[y][x + 1] + board[y + 1][x - 1] + board[y + 1][x] + board[y + 1][x + 1];
            next[y][x] = (n == 3) | ((n == 2) & board[y][x]);
        }
    for (int y = 1; y <= SIDE; y++)
        for (int x = 1; x <= SIDE; x++)
            board[y][x] = next[y][x];
}

int main(int argc, char **argv)
{
    int generations = argc > 1 ? atoi(argv[1]) : 25000;
    int alive = 0;
    srand(1);
    for (int y = 1; y <= SIDE; y++)
        for (int x = 1; x <= SIDE; x++)
            board[y][x] = rand() % 3 == 0;
    for (int g = 0; g < generations; g++)
        step();
    for (int y = 1; y <= SIDE; y++)
        for (int x = 1; x <= SIDE; x++)
            alive += board[y][x];
    printf("%d alive\n", alive);
    return 0;
}
