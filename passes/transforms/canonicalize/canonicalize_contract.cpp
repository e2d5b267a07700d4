#include <fmt/core.h>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe::ir::canonical {

namespace {

ContractionRoles roles_of(const Node& contraction) { return contraction.op->as<Contraction>()->roles(contraction); }

Value contraction(const Value& a, const Value& b, const ContractionRoles& roles) {
  return contract(a, b, fmt::format("{},{}->{}", roles.lhs, roles.rhs, roles.out));
}

/// Removes a permutation from the operand and permutes its labels instead.
bool absorb(Value& operand, std::string& labels) {
  const auto order = permutation(operand.node());
  if (!order) return false;
  std::string now(labels.size(), ' ');
  for (std::size_t i = 0; i < order->size(); ++i) now[(*order)[i]] = labels[i];
  labels = now;
  operand = operand_of(operand);
  return true;
}

std::optional<Value> permuted_operands(const Context& c) {
  if (c.node.op != &ops::contract) return std::nullopt;
  ContractionRoles roles = roles_of(c.node);
  Value a = c.operand(0), b = c.operand(1);
  const bool first = absorb(a, roles.lhs), second = absorb(b, roles.rhs);
  if (!first && !second) return std::nullopt;
  return contraction(a, b, roles);
}

std::optional<Value> permuted_result(const Context& c) {
  const auto order = permutation(c.node);
  if (!order) return std::nullopt;
  const Value& product = c.operand(0);
  if (!is(product, ops::contract) || c.uses(product) != 1) return std::nullopt;
  ContractionRoles roles = roles_of(product.node());
  const std::string out = roles.out;
  for (std::size_t i = 0; i < order->size(); ++i) roles.out[i] = out[(*order)[i]];
  return contraction(operand_of(product, 0), operand_of(product, 1), roles);
}

/// Whether a value is a view of windows.
bool shows_windows(Value value) {
  while (value.node().op->as<View>() && !is(value, ops::unfold)) value = operand_of(value);
  return is(value, ops::unfold);
}

/// A matmul may add its terms in any order. The gradient of a convolution multiplies by its kernel in reverse order;
/// the windows, which are read by index anyway, are reversed instead, so that the kernel is read in long runs.
std::optional<Value> flipped_sum(const Context& c) {
  if (c.node.op != &ops::contract) return std::nullopt;
  const ContractionRoles roles = roles_of(c.node);
  for (const bool left : {true, false}) {
    const Value &flipped = c.operand(left ? 0 : 1), &other = c.operand(left ? 1 : 0);
    if (!is(flipped, ops::flip) || shows_windows(flipped) || !shows_windows(other)) continue;
    const std::string &labels = left ? roles.lhs : roles.rhs, &others = left ? roles.rhs : roles.lhs;
    const char label = labels[static_cast<std::size_t>(flipped_dim(flipped.node()))];
    const std::size_t at = others.find(label);
    if (at == std::string::npos || roles.out.find(label) != std::string::npos) continue;
    const Value kernel = operand_of(flipped), windows = flip(other, static_cast<int>(at));
    return left ? contraction(kernel, windows, roles) : contraction(windows, kernel, roles);
  }
  return std::nullopt;
}

/// A value that is computed with two dims, parts[dim] and parts[dim + 1], which a reshape then merges.
struct JoinedDim {
  Value parts;
  int dim;
};

/// Returns the merged dim if a reshape, or a cast of one, merges two adjacent dims of an elementwise value, of known
/// sizes other than 1, and keeps all other dims. Returns nothing for other values.
std::optional<JoinedDim> joined_dim(const Value& value) {
  const bool casts = is(value, ops::cast);
  const Value joined = casts ? operand_of(value) : value;
  if (!keeps_order(*joined.node().op) || !operand_of(joined).node().op->as<Elementwise>()) return std::nullopt;
  const Value parts = operand_of(joined);
  const Shape from = parts.shape(), to = joined.shape();
  if (from.rank() != to.rank() + 1) return std::nullopt;
  int d = 0;
  while (d < to.rank() && from[d] == to[d]) ++d;
  if (d == to.rank() || from[d] * from[d + 1] != to[d]) return std::nullopt;
  for (const int i : {d, d + 1})
    if (!from[i].value() || from[i].is(1)) return std::nullopt;
  for (int i = d + 1; i < to.rank(); ++i)
    if (from[i + 1] != to[i]) return std::nullopt;
  return JoinedDim{casts ? cast(parts, value.dtype()) : parts, d};
}

/// Returns a label that the roles do not use.
char new_label(const ContractionRoles& roles) {
  for (char label = 'A'; label <= 'Z'; ++label)
    if ((roles.lhs + roles.rhs + roles.out).find(label) == std::string::npos) return label;
  return 0;
}

/// Splits one dim into two: [.., p * q, ..] -> [.., p, q, ..].
Value split_dim(const Value& value, int dim, const Dim& p, const Dim& q) {
  Shape shape;
  for (int i = 0; i < value.rank(); ++i) {
    shape.push_back(i == dim ? p : value.shape()[i]);
    if (i == dim) shape.push_back(q);
  }
  return view(value, shape);
}

/// If the dim that a matmul sums over is computed as two dims, such as blocks and the elements of each, the matmul
/// sums over both. It can then compute the operand in place, which is impossible through a reshape.
std::optional<Value> split_contracted(const Context& c) {
  if (c.node.op != &ops::contract) return std::nullopt;
  for (const bool left : {true, false}) {
    ContractionRoles roles = roles_of(c.node);
    const Value &joined = c.operand(left ? 0 : 1), &other = c.operand(left ? 1 : 0);
    const auto found = joined_dim(joined);
    if (!found || c.uses(joined) > 1) continue;
    std::string &labels = left ? roles.lhs : roles.rhs, &others = left ? roles.rhs : roles.lhs;
    const auto d = static_cast<std::size_t>(found->dim);
    const char label = labels[d], added = new_label(roles);
    const std::size_t at = others.find(label);
    if (!added || roles.out.find(label) != std::string::npos || at == std::string::npos) continue;
    const Value& computed = found->parts;
    const Dim p = computed.shape()[found->dim], q = computed.shape()[found->dim + 1];
    const Value parts = split_dim(other, static_cast<int>(at), p, q);
    labels.insert(d + 1, 1, added);
    others.insert(at + 1, 1, added);
    return left ? contraction(computed, parts, roles) : contraction(parts, computed, roles);
  }
  return std::nullopt;
}

/// Renames labels to letters in order of appearance, so that equal matmuls have equal specs: "nqhd,nkhd->nhqk" ->
/// "abcd,aecd->acbe".
std::optional<Value> rename_labels(const Context& c) {
  if (c.node.op != &ops::contract) return std::nullopt;
  ContractionRoles roles = roles_of(c.node);
  std::string letters;
  for (std::string* part : {&roles.lhs, &roles.rhs, &roles.out})
    for (char& label : *part) {
      auto at = letters.find(label);
      if (at == std::string::npos) {
        at = letters.size();
        letters += label;
      }
      if (at >= 52) return std::nullopt;
      label = static_cast<char>(at < 26 ? 'a' + static_cast<char>(at) : 'A' + static_cast<char>(at - 26));
    }
  return contraction(c.operand(0), c.operand(1), roles);
}

/// Returns the operand with its dims in the order of the labels `order`, and products of 16-bit floats in f32.
Value factor(const Value& operand, const std::string& labels, const std::string& order) {
  std::vector<std::int64_t> dims;
  for (const char label : order) dims.push_back(static_cast<std::int64_t>(labels.find(label)));
  const bool is_sorted = labels == order, is_short = size_in_bytes(operand.dtype()) == 2;
  const Value ordered = is_sorted ? operand : permute(operand, dims);
  return is_short ? cast(ordered, f32) : ordered;
}

/// Dot products along one dim, without rows or columns that share an operand: nothing is read twice, and a sum runs
/// in parallel and is precise for any length (passes/lowering/block_sums.h). Over several dims, the sum would store
/// one partial result per index of the outer ones.
std::optional<Value> dot_products(const Context& c) {
  if (c.node.op != &ops::contract || is_complex(c.node.type.dtype)) return std::nullopt;
  const ContractionRoles roles = roles_of(c.node);
  const std::string batch = roles.batch(), summed = roles.contracted();
  if (!roles.lhs_free().empty() || !roles.rhs_free().empty() || summed.size() != 1) return std::nullopt;
  std::string kept = roles.lhs;
  std::erase_if(kept, [&](char label) { return summed.find(label) != std::string::npos; });
  const std::string order = kept == batch ? roles.lhs : batch + summed;
  std::vector<std::int64_t> dims;
  for (const char label : summed) dims.push_back(static_cast<std::int64_t>(order.find(label)));
  const Value products = mul(factor(c.operand(0), roles.lhs, order), factor(c.operand(1), roles.rhs, order));
  return cast(sum(products, dims), c.node.type.dtype);
}

constexpr Rule all_contract_rules[] = {
    {"dot_products", "contract(a, b) without free dims -> sum(mul(a, b))", dot_products},
    {"permuted_operands", "contract(permute(a), b) -> contract(a, b) with a's labels in a's own order",
     permuted_operands},
    {"permuted_result",
     "permute(contract(a, b)) -> contract(a, b) that writes in that order, where nothing else reads it",
     permuted_result},
    {"flipped_sum",
     "contract(flip(a), b) -> contract(a, flip(b)) along a summed dim, where b shows windows and a none",
     flipped_sum},
    {"split_contracted", "contract(a, reshape(b)) -> contract(reshape(a), b) where b is computed with the dim in two",
     split_contracted},
    {"rename_labels", "contract's labels in order of appearance", rename_labels},
};

}  // namespace

std::span<const Rule> contract_rules() { return all_contract_rules; }

}  // namespace lathe::ir::canonical
