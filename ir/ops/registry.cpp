#include <algorithm>
#include <vector>

#include "ir/ops/composites.h"
#include "ir/ops/primitives.h"

namespace lathe::ir {

namespace {

/// Every record, in the order of ir/ops/primitives.h.
// clang-format off
constexpr const Op* records[] = {
    &ops::input, &ops::parameter, &ops::state,
    &ops::constant, &ops::iota, &ops::random_uniform, &ops::random_uniform_at,
    &ops::add, &ops::sub, &ops::mul, &ops::div, &ops::rem, &ops::minimum, &ops::maximum, &ops::pow, &ops::neg, &ops::abs, &ops::sign, &ops::floor, &ops::round,
    &ops::exp, &ops::log, &ops::sqrt, &ops::rsqrt, &ops::sin, &ops::cos, &ops::tanh, &ops::erf,
    &ops::eq, &ops::ne, &ops::lt, &ops::le, &ops::logical_and, &ops::logical_or, &ops::logical_not, &ops::where, &ops::cast,
    &ops::transpose, &ops::permute, &ops::expand, &ops::slice, &ops::view, &ops::unsqueeze, &ops::squeeze, &ops::diagonal,
    &ops::reshape, &ops::contiguous,
    &ops::sum, &ops::max, &ops::min,
    &ops::contract,
    &ops::gather, &ops::scatter_add, &ops::update_rows, &ops::concat, &ops::pad,
    &ops::mesh_index, &ops::all_reduce, &ops::all_gather, &ops::reduce_scatter, &ops::all_to_all,
    &ops::cumsum, &ops::argsort, &ops::top_k,
    &ops::grouped_matmul, &ops::segment_outer,
    &ops::view_as_complex, &ops::view_as_real, &ops::conj, &ops::polar,
    &ops::matmul, &ops::linear, &ops::einsum,
    &ops::mean, &ops::var, &ops::logsumexp, &ops::argmax,
    &ops::softmax, &ops::log_softmax, &ops::layer_norm, &ops::rms_norm,
    &ops::relu, &ops::gelu, &ops::silu, &ops::sigmoid, &ops::softplus,
    &ops::square, &ops::reciprocal, &ops::clamp,
    &ops::masked_fill, &ops::tril, &ops::triu, &ops::one_hot, &ops::stop_gradient,
    &ops::cross_entropy, &ops::dropout,
    &ops::attention, &ops::rope,
    &ops::dequantize,
};
// clang-format on

bool by_name(const Op* a, const Op* b) { return a->name.value < b->name.value; }

const std::vector<const Op*>& sorted() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> all(std::begin(records), std::end(records));
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

}  // namespace lathe::ir
