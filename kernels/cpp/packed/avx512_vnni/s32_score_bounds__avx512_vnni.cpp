// Lower and upper bounds of the scores of one token over all experts, from int16 products.
//
// The terms are those of router_candidates.h; the affinity is within 4 * 2^-24 of the sigmoid of z,
// as in ../avx2/f32_sigmoid_scores__avx2.cpp, whose exp this one equals.
#include "candidates__avx512_vnni.h"
#include "exp__avx512_vnni.h"
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" void moe_s32_score_bounds__avx512_vnni(size_t n, const int32_t *acc,
                                                  const moe_candidate_rows *rows,
                                                  const moe_candidate_token *token, float *lower,
                                                  float *upper) {
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 x_scale = _mm512_set1_ps(token->scale);
    const __m512 x_norm = _mm512_set1_ps(token->norm);
    const __m512 x_left = _mm512_set1_ps(token->left_over);
    const __m512 rounding = _mm512_set1_ps(token->rounding);
    for (size_t i = 0; i < n; i += 2 * 16) { // all arrays are padded to whole panels
        __m512 z[2], e[2];
#pragma GCC unroll 2
        for (size_t c = 0; c < 2; ++c) {
            const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(rows->scale + i + c * 16), x_scale);
            z[c] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(acc + i + c * 16)), scale);
            e[c] = _mm512_sub_ps(_mm512_setzero_ps(), z[c]);
        }
        exp_f32x16(e);
#pragma GCC unroll 2
        for (size_t c = 0; c < 2; ++c) {
            const size_t at = i + c * 16;
            const __m512 dz =
                _mm512_fmadd_ps(_mm512_loadu_ps(rows->norm + at), x_left,
                                _mm512_mul_ps(_mm512_loadu_ps(rows->left_over + at), x_norm));
            const __m512 a = _mm512_div_ps(one, _mm512_add_ps(one, e[c]));
            const __m512 here = _mm512_fnmadd_ps(a, a, a); // a (1 - a)
            const __m512 steepest = _mm512_fmadd_ps(
                _mm512_set1_ps(0.0963f), dz, _mm512_add_ps(here, _mm512_set1_ps(0x1p-22f)));
            const __m512 slope = _mm512_min_ps(steepest, _mm512_set1_ps(0.25f));
            const __m512 error = _mm512_fmadd_ps(dz, slope, rounding);
            const __m512 score = _mm512_add_ps(a, _mm512_loadu_ps(rows->bias + at));
            _mm512_storeu_ps(lower + at, _mm512_sub_ps(score, error));
            _mm512_storeu_ps(upper + at, _mm512_add_ps(score, error));
        }
    }
}
