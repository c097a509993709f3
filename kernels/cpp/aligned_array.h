// Arrays that start on a cache line and whose pages are not touched before their owner does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace moe {

constexpr std::size_t kAlignment = 64; // a cache line, and the widest vector register

// size elements of a trivial T; contents are indeterminate until zero() or the owner's stores.
template <class T> class AlignedArray {
public:
    AlignedArray() = default;
    explicit AlignedArray(std::size_t size) : size_(size) {
        if (size > (SIZE_MAX - kAlignment) / sizeof(T)) {
            throw std::bad_alloc();
        }
        const std::size_t bytes = (size * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        data_ = static_cast<T *>(std::aligned_alloc(kAlignment, bytes == 0 ? kAlignment : bytes));
        if (data_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    AlignedArray(AlignedArray &&other) noexcept : data_(other.data_), size_(other.size_) {
        other.data_ = nullptr;
        other.size_ = 0;
    }
    AlignedArray &operator=(AlignedArray &&other) noexcept {
        if (this != &other) {
            std::free(data_);
            data_ = other.data_;
            size_ = other.size_;
            other.data_ = nullptr;
            other.size_ = 0;
        }
        return *this;
    }
    ~AlignedArray() { std::free(data_); }

    T *data() { return data_; }
    const T *data() const { return data_; }
    std::size_t size() const { return size_; }
    int64_t bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }
    T &operator[](std::size_t i) { return data_[i]; }
    const T &operator[](std::size_t i) const { return data_[i]; }

    // Sets elements begin..end to zero bytes: the first touch that places their pages.
    void zero(std::size_t begin, std::size_t end) {
        std::memset(static_cast<void *>(data_ + begin), 0, (end - begin) * sizeof(T));
    }
    void zero() { zero(0, size_); }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace moe
