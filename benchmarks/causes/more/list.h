/* A linked list in an array, in shuffled order; arguments: nodes of 64 bytes, steps. */
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
    char padding[48];
};

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    long steps = argc > 2 ? atol(argv[2]) : 1000000;
    struct node *nodes = aligned_alloc(64, count * sizeof *nodes);
    size_t *order = malloc(count * sizeof *order);
    if (!nodes || !order)
        return 1;
    srand(3);
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = ((size_t)rand() * 32768u + rand()) % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (size_t i = 0; i < count; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % count]];
        nodes[order[i]].value = (long)i;
    }
    free(order);
    long sum = 0;
    struct node *p = nodes;
    for (long i = 0; i < steps; i++) {
        sum += p->value;
        p = p->next;
    }
    printf("%ld\n", sum);
    return 0;
}
