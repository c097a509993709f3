// One int8 matrix per expert; where asked, experts e and e mod M share the memory of theirs.
//
// Sharing maps the first M experts' pages again for the others, so that kernels run unchanged on a
// layer larger than memory; caches and memory then see fewer bytes than the layer has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aligned_array.h"

namespace bench {

class ExpertArray {
public:
    ExpertArray() = default;
    // experts matrices of matrix_size elements; distinct: M, 0 for all. Throws std::bad_alloc, also
    // when M matrices together are not whole pages.
    ExpertArray(std::size_t experts, std::size_t matrix_size, std::size_t distinct);
    ExpertArray(ExpertArray &&other) noexcept;
    ExpertArray &operator=(ExpertArray &&other) noexcept;
    ~ExpertArray();

    int8_t *data() { return mapped_ != nullptr ? mapped_ : own_.data(); }
    const int8_t *data() const { return mapped_ != nullptr ? mapped_ : own_.data(); }
    std::size_t size() const { return size_; }
    // Elements from the first that have memory of their own: those to fill.
    int64_t distinct_size() const { return static_cast<int64_t>(distinct_size_); }

private:
    void swap(ExpertArray &other) noexcept;

    moe::AlignedArray<int8_t> own_;
    int8_t *mapped_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    std::size_t size_ = 0;
    std::size_t distinct_size_ = 0;
};

} // namespace bench
