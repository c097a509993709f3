// How far a result is from the baseline's, and a digest of its bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace bench {

struct Difference {
    double rel_rmse = 0.0;    // ||actual - expected|| / ||expected|| over all values
    double worst_error = 0.0; // the same of the worst single token
    int64_t worst_token = -1; // -1: every token is exact
};

// Largest accepted errors of a kernel that keeps another fp32 order than the baseline.
constexpr double kLargestRelRmse = 1e-3;
constexpr double kLargestTokenError = 5e-3;

inline double relative(double error_squares, double squares) {
    if (error_squares == 0.0) {
        return 0.0;
    }
    const double ratio = std::sqrt(error_squares / squares);
    return std::isfinite(ratio) ? ratio : HUGE_VAL;
}

// actual, expected: (n, d) f32. A value that is not finite makes its token's error infinite.
inline Difference compare(const float *actual, const float *expected, int64_t n, int64_t d) {
    Difference result;
    double all_errors = 0.0;
    double all_squares = 0.0;
    for (int64_t t = 0; t < n; ++t) {
        double errors = 0.0;
        double squares = 0.0;
        for (int64_t i = t * d; i < (t + 1) * d; ++i) {
            const double error = double{actual[i]} - double{expected[i]};
            errors += error * error;
            squares += double{expected[i]} * double{expected[i]};
        }
        const double token_error = relative(errors, squares);
        if (token_error > result.worst_error) {
            result.worst_error = token_error;
            result.worst_token = t;
        }
        all_errors += errors;
        all_squares += squares;
    }
    result.rel_rmse = relative(all_errors, all_squares);
    return result;
}

inline bool acceptable(const Difference &difference) {
    return difference.rel_rmse <= kLargestRelRmse && difference.worst_error <= kLargestTokenError;
}

// FNV-1a over the bytes: equal digests mean equal bits, for all practical purposes.
inline uint64_t digest(const float *values, int64_t size) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (int64_t i = 0; i < size; ++i) {
        uint32_t bits;
        std::memcpy(&bits, &values[i], sizeof bits);
        for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ (bits >> shift & 0xFF)) * 0x100000001B3u;
        }
    }
    return hash;
}

} // namespace bench
