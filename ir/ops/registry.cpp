#include <algorithm>
#include <vector>

#include "ir/ops/list.h"
#include "ir/ops/precision.h"

namespace lathe::ir {

namespace {

/// Every record, in the list of where mixed precision computes it (ir/ops/precision.h).
// clang-format off
constexpr const Op* narrow_ops[] = {
    &ops::contract, &ops::matmul, &ops::linear, &ops::einsum, &ops::attention,
};
constexpr const Op* wide_ops[] = {
    &ops::exp, &ops::log, &ops::pow, &ops::rsqrt, &ops::reciprocal, &ops::square,
    &ops::sum, &ops::mean, &ops::var, &ops::logsumexp, &ops::softmax, &ops::log_softmax,
    &ops::layer_norm, &ops::rms_norm, &ops::cross_entropy, &ops::scatter_add,
    &ops::view_as_complex, &ops::polar,
};
constexpr const Op* follow_ops[] = {
    &ops::input, &ops::parameter, &ops::state,
    &ops::constant, &ops::iota, &ops::random_uniform,
    &ops::add, &ops::sub, &ops::mul, &ops::div, &ops::rem, &ops::minimum, &ops::maximum,
    &ops::neg, &ops::abs, &ops::sign, &ops::floor, &ops::round,
    &ops::sqrt, &ops::sin, &ops::cos, &ops::tanh, &ops::erf,
    &ops::eq, &ops::ne, &ops::lt, &ops::le, &ops::logical_and, &ops::logical_or, &ops::logical_not,
    &ops::where, &ops::cast,
    &ops::transpose, &ops::permute, &ops::expand, &ops::slice, &ops::view, &ops::unsqueeze, &ops::squeeze,
    &ops::diagonal, &ops::reshape, &ops::contiguous,
    &ops::max, &ops::min,
    &ops::gather, &ops::update_rows, &ops::concat, &ops::pad,
    &ops::view_as_real, &ops::conj,
    &ops::argmax,
    &ops::relu, &ops::gelu, &ops::silu, &ops::sigmoid, &ops::softplus, &ops::clamp,
    &ops::masked_fill, &ops::tril, &ops::triu, &ops::one_hot, &ops::stop_gradient,
    &ops::dropout, &ops::rope,
};
// clang-format on

bool by_name(const Op* a, const Op* b) { return a->name.value < b->name.value; }

const std::vector<const Op*>& sorted() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> all(std::begin(narrow_ops), std::end(narrow_ops));
    all.insert(all.end(), std::begin(wide_ops), std::end(wide_ops));
    all.insert(all.end(), std::begin(follow_ops), std::end(follow_ops));
    std::sort(all.begin(), all.end(), by_name);
    return all;
  }();
  return ops;
}

}  // namespace

const Op* find_op(std::string_view name) {
  const auto& ops = sorted();
  const auto at = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const Op* op, std::string_view text) { return op->name.value < text; });
  return at != ops.end() && (*at)->name.value == name ? *at : nullptr;
}

std::span<const Op* const> all_ops() { return sorted(); }

Precision precision_of(const Op& op) {
  const auto holds = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), &op) != std::end(list);
  };
  return holds(narrow_ops) ? Precision::narrow : holds(wide_ops) ? Precision::wide : Precision::follow;
}

}  // namespace lathe::ir
