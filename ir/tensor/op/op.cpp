#include "ir/tensor/op/op.h"

#include <fmt/core.h>

#include "ir/tensor/builder.h"

namespace lathe::ir {

void InferContext::fail(std::string_view label, std::string_view message, std::string_view hint) const {
  throw UserError(loc_, op_.name.value, message, label, hint);
}

void InferContext::require_equal(const Dim& a, const Dim& b, std::string_view label, std::string_view message,
                                 std::string_view hint) const {
  switch (a.equals(b)) {
    case Dim::Answer::yes: return;
    case Dim::Answer::no: fail(label, message, hint);
    case Dim::Answer::unknown:
      checks_.push_back({a, b, DimCheck::Relation::equal, loc_, std::string(op_.name.value), std::string(label),
                         std::string(message)});
  }
}

void InferContext::require_at_most(const Dim& a, const Dim& b, std::string_view label, std::string_view message,
                                   std::string_view hint) const {
  if (const auto gap = (b - a).value()) {
    if (*gap < 0) fail(label, message, hint);
    return;
  }
  checks_.push_back({a, b, DimCheck::Relation::at_most, loc_, std::string(op_.name.value), std::string(label),
                     std::string(message)});
}

int InferContext::axis(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    fail("dim_range", fmt::format("dim {} is out of range for a tensor of rank {}", axis, rank),
         rank == 0 ? "a scalar has no dims" : fmt::format("use {} to {}", -rank, rank - 1));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

const Value& GradientContext::operand(int i) const { return operands[i]; }

void GradientContext::set(int i, const Value& gradient) const { grads[i] = gradient; }

namespace {
bool has(std::string_view labels, char c) { return labels.find(c) != std::string_view::npos; }
}  // namespace

std::string ContractionRoles::batch() const {
  std::string found;
  for (const char c : out)
    if (has(lhs, c) && has(rhs, c)) found += c;
  return found;
}

std::string ContractionRoles::contracted() const {
  std::string found;
  for (const char c : lhs)
    if (has(rhs, c) && !has(out, c)) found += c;
  return found;
}

std::string ContractionRoles::lhs_free() const {
  std::string found;
  for (const char c : out)
    if (has(lhs, c) && !has(rhs, c)) found += c;
  return found;
}

std::string ContractionRoles::rhs_free() const {
  std::string found;
  for (const char c : out)
    if (has(rhs, c) && !has(lhs, c)) found += c;
  return found;
}

Dim ContractionRoles::size_of(std::string_view labels, const Graph& graph, const Node& contraction) const {
  Dim product(1);
  for (const char label : labels) {
    const bool left = has(lhs, label);
    const auto at = (left ? lhs : rhs).find(label);
    product = product * graph[contraction.operands[left ? 0 : 1]].type.shape[static_cast<int>(at)].unnamed();
  }
  return product;
}

}  // namespace lathe::ir
