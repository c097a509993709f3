// Planted: syscall_bound. Reads 12-byte records one by one with pread from an (in-memory) file: the
// time is the system-call path, not the records.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct rec { uint32_t id, qty, price; };
enum { RECORDS = 20000, READS = 4500000 };

int main(void)
{
    int fd = memfd_create("orders", 0);
    if (fd < 0) return 1;
    static struct rec all[RECORDS];
    for (uint32_t i = 0; i < RECORDS; i++) all[i] = (struct rec){i, i * 7 % 100, i * 31 % 9973};
    if (write(fd, all, sizeof all) != (ssize_t)sizeof all) return 1;
    uint64_t sum = 0;
    uint32_t k = 0;
    for (long n = 0; n < READS; n++) {
        struct rec r;
        if (pread(fd, &r, sizeof r, (off_t)(k * sizeof r)) != (ssize_t)sizeof r) return 1;
        sum += (uint64_t)r.qty * r.price;
        k += 17;
        if (k >= RECORDS) k -= RECORDS;
    }
    printf("checksum %llu\n", (unsigned long long)sum);
    close(fd);
    return 0;
}
