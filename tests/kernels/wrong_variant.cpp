// A variant for tests that computes a wrong result: its last token is zero.
#include <algorithm>

#include "reference_plan.h"

namespace moe {
namespace {

class WrongPlan final : public Plan {
public:
    WrongPlan(const moe_weights &w, const moe_options &options)
        : Plan(w, options, 1), right_(make_reference_plan(w, options)) {}

    void forward(const float *x, float *y, int64_t n) noexcept override {
        right_->forward(x, y, n);
        std::fill_n(y + (n - 1) * weights.d_model, weights.d_model, 0.0f);
    }
    void describe(moe_info *info) const override { right_->describe(info); }

private:
    std::unique_ptr<Plan> right_;
};

std::unique_ptr<Plan> make_wrong_plan(const moe_weights &w, const moe_options &options) {
    return std::make_unique<WrongPlan>(w, options);
}

} // namespace
} // namespace moe

MOE_REGISTER_VARIANT("wrong", moe::make_wrong_plan)
