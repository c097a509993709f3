// The microkernels of the path that this program is linked with, through its table, against plain
// loops: edges of tiles, the whole int8 range, vanishing and overflowed rows. Prints one line per
// check that failed and the number of checks; exit code 1 when one failed.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "packed/path.h"

extern "C" void moe_f32_exp__rvv(size_t n, const float *v, float *out);

namespace {

const moe_microkernels &mk = moe::packed::path_microkernels();
std::mt19937 generator(7);
int checks = 0, failures = 0;

void expect(bool good, const char *what, size_t a, size_t b = 0) {
    ++checks;
    if (!good) {
        ++failures;
        std::printf("FAILED %s at %zu, %zu\n", what, a, b);
    }
}

float uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(generator);
}

int8_t any_int8() {
    return static_cast<int8_t>(std::uniform_int_distribution<int>(-128, 127)(generator));
}

// Bytes that start on a cache line and hold a pattern that no kernel may rely on.
struct Bytes {
    explicit Bytes(size_t size) : raw(size + 64, 0xA5) {}
    void *data() { return raw.data() + (64 - reinterpret_cast<uintptr_t>(raw.data()) % 64) % 64; }
    std::vector<uint8_t> raw;
};

// q: |q| <= 127 with one of size 127, so that quantizing it changes nothing.
Bytes row_of(const std::vector<int8_t> &q) {
    Bytes row(mk.row_bytes(q.size()));
    const std::vector<float> values(q.begin(), q.end());
    const float scale = mk.quantize(values.size(), values.data(), 127.0f, row.data());
    expect(scale == 1.0f, "scale of a row of int8", q.size());
    return row;
}

void check_products(const moe_microkernels &kernels, size_t k, size_t channels, int weight,
                    int value) {
    std::vector<std::vector<int8_t>> weights(channels, std::vector<int8_t>(k));
    std::vector<const int8_t *> pointers(kernels.nr, nullptr);
    for (size_t c = 0; c < channels; ++c) {
        for (int8_t &w : weights[c]) {
            w = weight == 0 ? any_int8() : static_cast<int8_t>(weight);
        }
        pointers[c] = weights[c].data();
    }
    Bytes panel(kernels.panel_bytes(k));
    kernels.pack_panel(k, pointers.data(), panel.data());
    std::vector<std::vector<int8_t>> q(kernels.mr, std::vector<int8_t>(k));
    std::vector<Bytes> rows;
    std::vector<const void *> row_pointers;
    for (std::vector<int8_t> &row : q) {
        for (int8_t &v : row) {
            v = value == 0 ? std::max<int8_t>(any_int8(), -127) : static_cast<int8_t>(value);
        }
        row[k / 2] = row[k / 2] < 0 ? -127 : 127;
        rows.push_back(row_of(row));
    }
    for (Bytes &row : rows) {
        row_pointers.push_back(row.data());
    }
    for (size_t m = 1; m <= kernels.mr; ++m) {
        const size_t stride = kernels.nr + 3;
        std::vector<int32_t> acc((m + 1) * stride, 77);
        kernels.gemm[m - 1](k, row_pointers.data(), panel.data(), acc.data(), stride);
        bool good = true;
        for (size_t r = 0; r <= m; ++r) {
            for (size_t c = 0; c < stride; ++c) {
                int64_t sum = 77;
                if (r < m && c < kernels.nr) {
                    sum = 0;
                    for (size_t i = 0; c < channels && i < k; ++i) {
                        sum += int64_t{weights[c][i]} * q[r][i];
                    }
                }
                good = good && acc[r * stride + c] == sum;
            }
        }
        expect(good, "product", k, m);
    }
}

void check_quantization() {
    for (const size_t n : {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 96, 100, 257}) {
        std::vector<float> v(n);
        float largest = 0.0f;
        for (float &value : v) {
            value = uniform(-37.0f, 37.0f);
            largest = std::fmax(largest, std::fabs(value));
        }
        expect(mk.absmax(n, v.data()) == largest, "absmax", n);
        Bytes row(mk.row_bytes(n));
        const float scale = mk.quantize(n, v.data(), largest, row.data());
        bool good = scale == largest / 127.0f;
        const int8_t *q = static_cast<const int8_t *>(row.data());
        for (size_t i = 0; i < (n + 31) / 32 * 32; ++i) {
            const float expected = i < n ? std::nearbyint(v[i] * (127.0f / largest)) : 0.0f;
            good = good && static_cast<float>(q[i]) == expected;
        }
        expect(good, "quantize", n);
    }
    const float infinity = std::numeric_limits<float>::infinity();
    const float overflowed[] = {infinity, -infinity, std::nanf(""), 1.0f};
    Bytes row(mk.row_bytes(4));
    mk.quantize(4, overflowed, infinity, row.data());
    const int8_t *q = static_cast<const int8_t *>(row.data());
    expect(q[0] >= -127 && q[1] >= -127 && q[2] >= -127, "quantize after an overflow", 4);
    const float halves[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -126.5f, 126.5f};
    const int8_t even[] = {127, 0, 2, 2, 0, -2, -126, 126};
    mk.quantize(8, halves, 127.0f, row.data());
    expect(std::memcmp(q, even, sizeof even) == 0, "quantize rounds half to even", 8);
    const float tiny[] = {1e-45f, -1e-45f, 0.0f};
    expect(mk.quantize(3, tiny, 1e-45f, row.data()) == 0.0f && q[0] == 0 && q[1] == 0,
           "quantize a vanishing row", 3);
}

void check_swiglu() {
    const size_t half = mk.nr / 2;
    for (const size_t panels : {1, 2, 5}) {
        std::vector<int32_t> acc(panels * mk.nr);
        std::vector<float> scales(acc.size()), h(panels * half + 1, 77.0f);
        for (size_t i = 0; i < acc.size(); ++i) {
            acc[i] = static_cast<int32_t>(uniform(-1048576.0f, 1048576.0f));
            scales[i] = uniform(0.0f, 1e-4f);
        }
        const float largest = mk.swiglu(panels, acc.data(), scales.data(), 0.5f, h.data());
        bool good = h.back() == 77.0f;
        float expected_largest = 0.0f;
        for (size_t p = 0; p < panels; ++p) {
            for (size_t c = 0; c < half; ++c) {
                const size_t at = p * mk.nr + c;
                const double g = acc[at] * (0.5 * scales[at]);
                const double u = acc[at + half] * (0.5 * scales[at + half]);
                const double exact = g / (1.0 + std::exp(-g)) * u;
                const float actual = h[p * half + c];
                good = good && std::fabs(actual - exact) <= 1e-5 * std::fabs(exact) + 1e-30;
                expected_largest = std::fmax(expected_largest, std::fabs(actual));
            }
        }
        expect(good && largest == expected_largest, "swiglu", panels);
    }
}

void check_dequantize_and_combine() {
    for (const size_t m : {1, 4, 8}) {
        const size_t n = 2 * mk.nr, offset = mk.nr, width = offset + n + 1;
        std::vector<int32_t> acc(m * n);
        std::vector<float> scales(offset + n), h_scale(m);
        std::vector<std::vector<float>> out(m, std::vector<float>(width, 77.0f));
        std::vector<float *> pointers;
        for (int32_t &v : acc) {
            v = static_cast<int32_t>(uniform(-16777216.0f, 16777216.0f));
        }
        for (float &v : scales) {
            v = uniform(0.0f, 1.0f);
        }
        for (size_t r = 0; r < m; ++r) {
            h_scale[r] = uniform(0.0f, 1.0f);
            pointers.push_back(out[r].data());
        }
        mk.dequantize(m, n, acc.data(), n, scales.data(), h_scale.data(), offset, pointers.data());
        bool good = true;
        for (size_t r = 0; r < m; ++r) {
            for (size_t c = 0; c < width; ++c) {
                const bool inside = c >= offset && c < offset + n;
                const float expected =
                    inside ? static_cast<float>(acc[r * n + c - offset]) * (h_scale[r] * scales[c])
                           : 77.0f;
                good = good && out[r][c] == expected;
            }
        }
        expect(good, "dequantize", m);
    }
    for (const size_t n : {1, 9, 16, 31, 100, 257}) {
        std::vector<float> x(n), y(n + 1, 77.0f), parts[3];
        const float gates[] = {0.25f, 1.0f, 0.7f};
        const float *pointers[3];
        for (int p = 0; p < 3; ++p) {
            for (size_t i = 0; i < n; ++i) {
                parts[p].push_back(uniform(-1.0f, 1.0f));
                x[i] = uniform(-1.0f, 1.0f);
            }
            pointers[p] = parts[p].data();
        }
        for (const bool residual : {true, false}) {
            mk.combine(n, residual ? x.data() : nullptr, pointers, gates, 3, y.data());
            bool good = y[n] == 77.0f;
            for (size_t i = 0; i < n; ++i) {
                volatile float sum = residual ? x[i] : 0.0f; // each step rounded
                for (int p = 0; p < 3; ++p) {
                    volatile float product = gates[p] * parts[p][i];
                    sum = sum + product;
                }
                good = good && y[i] == sum;
            }
            expect(good, "combine", n, residual);
        }
    }
}

void check_router() {
    for (const size_t kc : {1, 3, 4, 33, 128}) {
        for (size_t mr = 1; mr <= mk.router_mr; ++mr) {
            const size_t stride = mk.router_nr + 4;
            std::vector<float> x(mr * 2 * kc), panel(2 * kc * mk.router_nr);
            std::vector<float> z((mr + 1) * stride, 77.0f);
            for (float &v : x) {
                v = uniform(-1.0f, 1.0f);
            }
            for (float &v : panel) {
                v = uniform(-1.0f, 1.0f);
            }
            for (size_t block = 0; block < 2; ++block) {
                std::vector<const float *> rows;
                for (size_t m = 0; m < mr; ++m) {
                    rows.push_back(x.data() + m * 2 * kc + block * kc);
                }
                mk.router(mr, kc, rows.data(), panel.data() + block * kc * mk.router_nr, block == 0,
                          z.data(), stride);
            }
            bool good = true;
            for (size_t m = 0; m <= mr; ++m) {
                for (size_t c = 0; c < stride; ++c) {
                    double sum = 77.0;
                    if (m < mr && c < mk.router_nr) {
                        sum = 0.0;
                        for (size_t k = 0; k < 2 * kc; ++k) {
                            sum += double{x[m * 2 * kc + k]} * panel[k * mk.router_nr + c];
                        }
                    }
                    good = good && std::fabs(z[m * stride + c] - sum) <= 1e-4;
                }
            }
            expect(good, "router", kc, mr);
        }
    }
}

void check_scores() {
    for (const size_t n : {1, 7, 16, 33, 257}) {
        std::vector<float> z(n), bias(n), affinity(n), score(n + 1, 77.0f);
        double squares = 0.0;
        for (size_t i = 0; i < n; ++i) {
            z[i] = uniform(-40.0f, 40.0f);
            bias[i] = uniform(-1.0f, 1.0f);
            squares += double{z[i]} * z[i];
        }
        expect(std::fabs(mk.sum_squares(n, z.data()) - squares) <= 1e-4 * squares, "squares", n);
        bool good = mk.sigmoid_scores(n, z.data(), bias.data(), affinity.data(), score.data()) == 1;
        for (size_t i = 0; i < n; ++i) {
            const double exact = 1.0 / (1.0 + std::exp(-double{z[i]}));
            good = good && std::fabs(affinity[i] - exact) <= 4 * 0x1p-24 &&
                   score[i] == affinity[i] + bias[i];
        }
        expect(good && score[n] == 77.0f, "sigmoid", n);
        z[n - 1] = n % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
        expect(mk.sigmoid_scores(n, z.data(), bias.data(), affinity.data(), score.data()) == 0,
               "sigmoid of a value that is not finite", n);
        for (const float threshold : {-10.0f, 0.0f, 10.0f}) {
            bool found_all = true;
            size_t at = 0;
            for (size_t i = 0; i < n; ++i) {
                if (bias[i] > threshold) {
                    at = mk.find_above(at, n, bias.data(), threshold);
                    found_all = found_all && at == i;
                    ++at;
                }
            }
            expect(found_all && mk.find_above(at, n, bias.data(), threshold) == n, "find", n);
        }
    }
}

void check_exp() {
    double worst = 0.0;
    for (float v = -87.3f; v < 88.7f; v += 0.0137f) {
        float result;
        moe_f32_exp__rvv(1, &v, &result);
        const double exact = std::exp(double{v});
        const float rounded = static_cast<float>(exact);
        const double ulp = std::nextafter(rounded, HUGE_VALF) - double{rounded};
        worst = std::fmax(worst, std::fabs(result - exact) / ulp);
    }
    expect(worst <= 1.01, "exp in units of a thousandth ulp", static_cast<size_t>(worst * 1000));
}

} // namespace

int main() {
    const moe_microkernels *tables[] = {&mk, moe_down_kernels(&mk)};
    for (const moe_microkernels *table : tables) {
        for (const size_t k : {1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 64, 100, 257}) {
            check_products(*table, k, table->nr, 0, 0);
        }
        check_products(*table, 33, 3, 0, 0); // missing channels are zero
        for (const int weight : {-128, 127}) {
            for (const int value : {-127, 127}) {
                check_products(*table, 129, table->nr, weight, value);
            }
        }
    }
    check_quantization();
    check_swiglu();
    check_dequantize_and_combine();
    check_router();
    check_scores();
    check_exp();
    std::printf("%s: %d checks, %d failed\n", mk.gemm_name, checks, failures);
    return failures == 0 ? 0 : 1;
}
