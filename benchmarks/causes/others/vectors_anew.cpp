// Planted: page_fault_bound. A large vector is made and dropped for every small task.
#include <cstdio>
#include <malloc.h>
#include <vector>

int main() {
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    long sum = 0;
    for (int task = 0; task < 2500; ++task) {
        std::vector<char> scratch;
        scratch.reserve(4u << 20);
        char *data = scratch.data();
        for (std::size_t i = 0; i < scratch.capacity(); i += 4096) {
            data[i] = static_cast<char>(task);
            sum += data[i];
        }
    }
    std::printf("%ld\n", sum);
}
