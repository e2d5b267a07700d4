#include "ir/ops/functional/functional_composites.h"

namespace lathe::ir {

Value einsum(std::string_view equation, std::span<const Value> operands) {
  if (operands.empty())
    throw UserError("einsum: no operands are given", "op_arity", "give at least one tensor after the equation");
  return operands[0].builder().add(ops::einsum, operands, {{"equation", std::string(equation)}});
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
