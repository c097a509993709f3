// Lower and upper bounds of the scores of one token over all experts, from int16 products.
//
// The terms are those of router_candidates.h; the affinity is within 4 * 2^-24 of the sigmoid of z
// as in f32_sigmoid_scores__avx2.cpp.
#include "candidates__avx2.h"
#include "exp__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_s32_score_bounds__avx2(size_t n, const int32_t *acc,
                                           const moe_candidate_rows *rows,
                                           const moe_candidate_token *token, float *lower,
                                           float *upper) {
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 x_scale = _mm256_set1_ps(token->scale);
    const __m256 x_norm = _mm256_set1_ps(token->norm);
    const __m256 x_left = _mm256_set1_ps(token->left_over);
    const __m256 rounding = _mm256_set1_ps(token->rounding);
    for (size_t i = 0; i < n; i += 2 * 8) { // all arrays are padded to whole panels
        __m256 z[2], e[2];
#pragma GCC unroll 2
        for (size_t c = 0; c < 2; ++c) {
            const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(rows->scale + i + c * 8), x_scale);
            z[c] = _mm256_mul_ps(_mm256_cvtepi32_ps(load_i8x32(acc + i + c * 8)), scale);
            e[c] = _mm256_sub_ps(_mm256_setzero_ps(), z[c]);
        }
        exp_f32x8(e);
#pragma GCC unroll 2
        for (size_t c = 0; c < 2; ++c) {
            const size_t at = i + c * 8;
            const __m256 dz =
                _mm256_fmadd_ps(_mm256_loadu_ps(rows->norm + at), x_left,
                                _mm256_mul_ps(_mm256_loadu_ps(rows->left_over + at), x_norm));
            const __m256 a = _mm256_div_ps(one, _mm256_add_ps(one, e[c]));
            const __m256 here = _mm256_fnmadd_ps(a, a, a); // a (1 - a)
            const __m256 steepest = _mm256_fmadd_ps(
                _mm256_set1_ps(0.0963f), dz, _mm256_add_ps(here, _mm256_set1_ps(0x1p-22f)));
            const __m256 slope = _mm256_min_ps(steepest, _mm256_set1_ps(0.25f));
            const __m256 error = _mm256_fmadd_ps(dz, slope, rounding);
            const __m256 score = _mm256_add_ps(a, _mm256_loadu_ps(rows->bias + at));
            _mm256_storeu_ps(lower + at, _mm256_sub_ps(score, error));
            _mm256_storeu_ps(upper + at, _mm256_add_ps(score, error));
        }
    }
}
