/* Preloaded by a test: counts heap allocations of a program and prints the count at its end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static long allocations;

void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (next == NULL) {
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    }
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return next(size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    static void *(*next)(size_t, size_t);
    if (next == NULL) {
        next = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
    }
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return next(alignment, size);
}

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "allocations: %ld\n", __atomic_load_n(&allocations, __ATOMIC_RELAXED));
}
