// Mapping the first experts' pages again for the others.
#include "expert_array.h"

#include <algorithm>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace bench {

namespace {

#ifdef __linux__
// size bytes of address space that repeat the pages of a new file of block bytes, or nullptr.
int8_t *map_repeated(std::size_t size, std::size_t block) {
    void *const start = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return nullptr;
    }
    const int file = memfd_create("experts", MFD_CLOEXEC);
    bool good = file >= 0 && ftruncate(file, static_cast<off_t>(block)) == 0;
    for (std::size_t low = 0; good && low < size; low += block) {
        good = mmap(static_cast<int8_t *>(start) + low, std::min(block, size - low),
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    }
    if (file >= 0) {
        close(file);
    }
    if (!good) {
        munmap(start, size);
        return nullptr;
    }
    return static_cast<int8_t *>(start);
}
#endif

} // namespace

ExpertArray::ExpertArray(std::size_t experts, std::size_t matrix_size, std::size_t distinct)
    : size_(experts * matrix_size), distinct_size_(size_) {
    if (distinct == 0 || distinct >= experts) {
        own_ = moe::AlignedArray<int8_t>(size_);
        return;
    }
#ifdef __linux__
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    distinct_size_ = distinct * matrix_size;
    mapped_bytes_ = (size_ + page - 1) / page * page;
    mapped_ = distinct_size_ % page == 0 ? map_repeated(mapped_bytes_, distinct_size_) : nullptr;
#endif
    if (mapped_ == nullptr) {
        throw std::bad_alloc();
    }
}

ExpertArray::ExpertArray(ExpertArray &&other) noexcept { swap(other); }

ExpertArray &ExpertArray::operator=(ExpertArray &&other) noexcept {
    swap(other);
    return *this;
}

ExpertArray::~ExpertArray() {
#ifdef __linux__
    if (mapped_ != nullptr) {
        munmap(mapped_, mapped_bytes_);
    }
#endif
}

void ExpertArray::swap(ExpertArray &other) noexcept {
    std::swap(own_, other.own_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(size_, other.size_);
    std::swap(distinct_size_, other.distinct_size_);
}

} // namespace bench
