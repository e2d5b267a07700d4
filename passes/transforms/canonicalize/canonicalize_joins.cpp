#include <algorithm>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/ops/rules/view_rules.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe::ir::canonical {

namespace {

int join_axis(const Node& node) {
  return rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
}

/// Whether a <= b for every size that a dim can have, if that is obvious: the difference is a number of 0 or more.
bool at_most(const Dim& a, const Dim& b) {
  const auto gap = (b - a).value();
  return gap && *gap >= 0;
}

// ---- pad

std::optional<Value> drop_pad(const Context& c) {
  if (c.node.op != &ops::pad) return std::nullopt;
  if (c.full_shape(0)) return c.operand(0);
  if (!is(c.operand(0), ops::pad) || join_axis(c.operand(0).node()) != join_axis(c.node)) return std::nullopt;
  const Attributes inner = c.operand(0).node().attrs;
  return pad(operand_of(c.operand(0)), join_axis(c.node), c.node.attrs.get<Dim>("low") + inner.get<Dim>("low"),
             inner.get<Dim>("high") + c.node.attrs.get<Dim>("high"));
}

/// A piece of a dim: `value` at start .. stop, zeros elsewhere.
struct Piece {
  Value value;
  Dim start, stop;
};

constexpr std::size_t most_splits = 64;

/// Collects the pads along one dim that a tree of adds sums up; returns false if there are other terms, or too many.
bool collect_pads(const Value& value, int dim, std::vector<Piece>& pieces) {
  std::vector<Value> terms = {value};  // a stack
  while (!terms.empty()) {
    if (pieces.size() + terms.size() > most_splits) return false;
    const Value term = terms.back();
    terms.pop_back();
    if (is(term, ops::add)) {
      terms.push_back(operand_of(term, 1));
      terms.push_back(operand_of(term, 0));
      continue;
    }
    if (!is(term, ops::pad) || join_axis(term.node()) != dim) return false;
    const Value inner = operand_of(term);
    const Dim low = term.node().attrs.get<Dim>("low").unnamed();
    pieces.push_back({inner, low, low + inner.shape()[dim].unnamed()});
  }
  return true;
}

/// Returns the first pad in a tree of adds.
std::optional<Value> first_pad(Value value) {
  for (std::size_t adds = 0; adds < most_splits && is(value, ops::add); ++adds) value = operand_of(value, 0);
  return is(value, ops::pad) ? std::optional(value) : std::nullopt;
}

/// Returns the pieces in order, if each starts where the previous one ends, from 0 to `size`.
std::optional<std::vector<Value>> in_order(std::vector<Piece> pieces, const Dim& size) {
  std::vector<Value> ordered;
  Dim at(0);
  while (!pieces.empty()) {
    const auto next = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.start == at; });
    if (next == pieces.end()) return std::nullopt;
    at = next->stop;
    ordered.push_back(next->value);
    pieces.erase(next);
  }
  return at == size ? std::optional(ordered) : std::nullopt;
}

std::optional<Value> sum_of_pads(const Context& c) {
  if (c.node.op != &ops::add) return std::nullopt;
  const auto pad = first_pad(c.operand(0));
  if (!pad) return std::nullopt;
  const int dim = join_axis(pad->node());
  std::vector<Piece> pieces;
  for (const Value& operand : c.operands)
    if (operand.rank() != c.node.type.rank() || !collect_pads(operand, dim, pieces)) return std::nullopt;
  for (const Piece& piece : pieces)  // the other dims must not broadcast
    for (int d = 0; d < c.shape().rank(); ++d)
      if (d != dim && !(piece.value.shape()[d] == c.shape()[d])) return std::nullopt;
  const auto parts = in_order(std::move(pieces), c.shape()[dim]);
  return parts ? std::optional(concat(*parts, dim)) : std::nullopt;
}

// ---- slices of joined values

/// Returns a slice of the piece at start .. stop, if the range is entirely inside it.
std::optional<Value> slice_inside(const Range& wanted, const Piece& piece) {
  if (!at_most(piece.start, wanted.start) || !at_most(wanted.stop, piece.stop)) return std::nullopt;
  return slice(piece.value, wanted.dim, wanted.start - piece.start, wanted.stop - piece.start, wanted.step);
}

std::optional<Value> slice_of_concat(const Context& c) {
  if (c.node.op != &ops::slice || !is(c.operand(0), ops::concat)) return std::nullopt;
  const Node joined = c.operand(0).node();
  const Range wanted = range_of(c.node, joined.type.shape);
  if (wanted.dim != join_axis(joined)) return std::nullopt;
  Dim at(0);
  for (int i = 0; i < static_cast<int>(joined.operands.size()); ++i) {
    const Value part = operand_of(c.operand(0), i);
    const Dim end = at + part.shape()[wanted.dim].unnamed();
    if (const auto found = slice_inside(wanted, {part, at, end})) return found;
    at = end;
  }
  return std::nullopt;
}

std::optional<Value> slice_of_pad(const Context& c) {
  if (c.node.op != &ops::slice || !is(c.operand(0), ops::pad)) return std::nullopt;
  const Node padded = c.operand(0).node();
  const Range wanted = range_of(c.node, padded.type.shape);
  if (wanted.dim != join_axis(padded)) return std::nullopt;
  const Value inner = operand_of(c.operand(0));
  const Dim low = padded.attrs.get<Dim>("low").unnamed();
  return slice_inside(wanted, {inner, low, low + inner.shape()[wanted.dim].unnamed()});
}

std::optional<Value> concat_of_slices(const Context& c) {
  if (c.node.op != &ops::concat) return std::nullopt;
  if (c.operands.size() == 1) return c.operand(0);
  const int dim = join_axis(c.node);
  if (!is(c.operand(0), ops::slice)) return std::nullopt;
  const Value base = operand_of(c.operand(0));
  Dim at(0);
  for (const Value& part : c.operands) {
    if (!is(part, ops::slice) || operand_of(part).id() != base.id()) return std::nullopt;
    const Range range = range_of(part.node(), base.shape());
    if (range.dim != dim || range.step != 1 || !(range.start == at)) return std::nullopt;
    at = range.stop;
  }
  return at == base.shape()[dim] ? std::optional(base) : std::nullopt;
}

constexpr Rule all_join_rules[] = {
    {"drop_pad", "pad by nothing -> x; pad(pad(x)) along one dim -> pad(x)", drop_pad},
    {"sum_of_pads", "pad(x) + pad(y) + .. that fill a dim without overlap -> concat (the sign of a zero aside)",
     sum_of_pads},
    {"slice_of_concat", "slice(concat(x, y)) inside x -> slice(x)", slice_of_concat},
    {"slice_of_pad", "slice(pad(x)) inside x -> slice(x)", slice_of_pad},
    {"concat_of_slices", "concat of the consecutive slices of x -> x; concat(x) -> x", concat_of_slices},
};

}  // namespace

std::span<const Rule> join_rules() { return all_join_rules; }

}  // namespace lathe::ir::canonical
