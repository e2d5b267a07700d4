#include "ir/ops/functional/functional_composites.h"

#include <numeric>

#include "ir/ops/functional/functional_helpers.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir {

namespace {

/// Every dim where none is given; positions counted from the front, as far as they are in range: equal ops then have
/// equal attributes.
std::vector<std::int64_t> reduced_dims(const Value& a, std::vector<std::int64_t> dims) {
  if (dims.empty()) {
    dims.resize(static_cast<std::size_t>(a.rank()));
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (std::int64_t& dim : dims)
    if (dim >= -a.rank()) dim = rules::normalize_axis(dim, a.rank());
  return dims;
}

}  // namespace

Value mean(const Value& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return unary(ops::mean, a, {{"dims", reduced_dims(a, dims)}, {"keepdim", keepdim}});
}
Value var(const Value& a, const std::vector<std::int64_t>& dims, bool keepdim, std::int64_t correction) {
  return unary(ops::var, a, {{"dims", reduced_dims(a, dims)}, {"keepdim", keepdim}, {"correction", correction}});
}
Value logsumexp(const Value& a, int dim, bool keepdim) {
  return unary(ops::logsumexp, a, {{"dim", from_front(a, dim)}, {"keepdim", keepdim}});
}
Value argmax(const Value& a, int dim) { return unary(ops::argmax, a, {{"dim", from_front(a, dim)}}); }

Value einsum(std::string_view equation, std::span<const Value> operands) {
  if (operands.empty())
    throw UserError("einsum: no operands are given", "op_arity", "give at least one tensor beside the equation");
  return operands[0].builder().add(ops::einsum, operands, {{"equation", std::string(equation)}});
}

Value softmax(const Value& a, int dim, bool zero_masked) {
  return unary(ops::softmax, a, {{"dim", from_front(a, dim)}, {"zero_masked", zero_masked}});
}
Value log_softmax(const Value& a, int dim) { return unary(ops::log_softmax, a, {{"dim", from_front(a, dim)}}); }
Value rms_norm(const Value& x, double eps) { return unary(ops::rms_norm, x, {{"eps", eps}}); }
Value rms_norm(const Value& x, const Value& weight, double eps) {
  return x.builder().add(ops::rms_norm, {x, weight}, {{"eps", eps}});
}

Value gelu(const Value& a, bool tanh_approximation) {
  return unary(ops::gelu, a, {{"approximate", std::string(tanh_approximation ? "tanh" : "none")}});
}

Value cross_entropy(const Value& logits, const Value& targets, std::optional<std::int64_t> ignore_index,
                    double label_smoothing) {
  Attributes attrs{{"label_smoothing", label_smoothing}};
  if (ignore_index) attrs.set("ignore_index", *ignore_index);
  return logits.builder().add(ops::cross_entropy, {logits, targets}, std::move(attrs));
}

Value dropout(const Value& a, const Value& random_state, double p) {
  GraphBuilder& b = a.builder();
  return b.add(ops::dropout, {a, random_state}, {{"p", p}, {"stream", b.next_stream()}});
}

Value attention(const Value& q, const Value& k, const Value& v, std::optional<Value> mask, double scale, bool causal,
                bool zero_masked, std::optional<Value> offset) {
  std::vector<Value> operands{q, k, v};
  if (mask) operands.push_back(*mask);
  if (offset) operands.push_back(*offset);
  return q.builder().add(
      ops::attention, operands,
      {{"scale", scale}, {"causal", causal}, {"offset", offset.has_value()}, {"zero_masked", zero_masked}});
}

}  // namespace lathe::ir
