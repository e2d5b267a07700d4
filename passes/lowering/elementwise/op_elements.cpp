#include "passes/lowering/elementwise/op_elements.h"

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "passes/fusion/reads.h"

namespace lathe {

using namespace ir;
using Kind = ElementwiseInstruction::Kind;

std::optional<ElementRead> OpElements::next_read(OpElement& element) {
  const Node& node = graph_[element.id];
  const std::size_t i = element.operands.size();
  if (node.op->as<Elementwise>()) {
    if (i == node.operands.size()) return std::nullopt;
    const ValueId operand = node.operands[i];
    return ElementRead{operand, broadcast_index(graph_[operand].type.shape, node.type.shape, element.index),
                       element.predicate};
  }
  LATHE_ASSERT(node.op->as<Custom>());
  switch (node.op->as<Custom>()->kind) {
    case CustomKind::iota:
    case CustomKind::random:
    case CustomKind::scatter_add: return std::nullopt;
    case CustomKind::random_at: return i == 0 ? std::optional(drawn_number(element)) : std::nullopt;
    case CustomKind::gather: return i == 0 ? std::optional(gathered_index(element)) : std::nullopt;
    case CustomKind::concat: return i < node.operands.size() ? std::optional(concat_part(element, i)) : std::nullopt;
    case CustomKind::pad: return i == 0 ? std::optional(padded(element)) : std::nullopt;
    case CustomKind::constant:
    case CustomKind::collective:
    case CustomKind::update_rows:
    case CustomKind::cumsum:
    case CustomKind::linear_recurrence:
    case CustomKind::argsort:
    case CustomKind::top_k:
    case CustomKind::cholesky:
    case CustomKind::solve_triangular:
    case CustomKind::orthonormal_basis:
    case CustomKind::eigenvectors:
    case CustomKind::grouped_matmul:
    case CustomKind::segment_outer:
    case CustomKind::view_as_complex:
    case CustomKind::view_as_real: break;
  }
  throw InternalError("an elementwise program met " + std::string(node.op->name.value));
}

int OpElements::emit(OpElement& element) {
  const Node& node = graph_[element.id];
  if (const auto* elementwise = node.op->as<Elementwise>())
    return code_.scalar(elementwise->op, node.type.dtype, std::move(element.operands), element.id);
  switch (node.op->as<Custom>()->kind) {
    case CustomKind::iota: return iota(element.id, element.index);
    case CustomKind::random: return random(element, row_major_strides(node.type.shape));
    case CustomKind::random_at: return random(element, std::vector<Dim>(element.index.size(), Dim(0)));
    case CustomKind::gather: return gather(element);
    case CustomKind::scatter_add: return row_sum(element.id, element.index, element.predicate);
    case CustomKind::concat: return concat(element);
    case CustomKind::pad: return pad(element);
    case CustomKind::constant:
    case CustomKind::collective:
    case CustomKind::update_rows:
    case CustomKind::cumsum:
    case CustomKind::linear_recurrence:
    case CustomKind::argsort:
    case CustomKind::top_k:
    case CustomKind::cholesky:
    case CustomKind::solve_triangular:
    case CustomKind::orthonormal_basis:
    case CustomKind::eigenvectors:
    case CustomKind::grouped_matmul:
    case CustomKind::segment_outer:
    case CustomKind::view_as_complex:
    case CustomKind::view_as_real: break;
  }
  throw InternalError("an elementwise program met " + std::string(node.op->name.value));
}

std::size_t OpElements::dim_of(const Node& node) const {
  const int rank = graph_[node.operands.empty() ? ValueId{0} : node.operands[0]].type.rank();
  return static_cast<std::size_t>(rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank));
}

int OpElements::iota(ValueId id, const AffineIndex& index) {
  const Node& node = graph_[id];
  const int dim = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
  const AffineIndex one = {index[dim]};
  const int value =
      code_.emit({.kind = Kind::index, .dtype = i64, .form = linear_form(one, {Dim(1)}, Dim(0), rank_)});
  return node.type.dtype == i64 ? value : code_.scalar(ScalarOp::cast, node.type.dtype, {value}, id);
}

/// The read of a draw's element number.
ElementRead OpElements::drawn_number(const OpElement& element) const {
  return {graph_[element.id].operands[1], element.index, element.predicate};
}

/// Emits a draw. Its number is computed with these strides unless the op has an operand for it.
int OpElements::random(const OpElement& element, const std::vector<Dim>& strides) {
  const Node& node = graph_[element.id];
  const Placement& state = plan_.placement[node.operands[0]];
  const Dim stride = graph_[node.operands[0]].type.strides[0];
  const auto word = [&](const Dim& offset) {
    Linear form = linear_form({}, {}, offset, rank_);
    return code_.emit({.kind = Kind::load, .dtype = i64, .form = std::move(form), .buffer = state.base});
  };
  std::vector<int> args = {word(state.offset), word(state.offset + stride)};
  for (const int number : element.operands) args.push_back(code_.scalar(ScalarOp::cast, i64, {number}, element.id));
  return code_.emit({.kind = Kind::random,
                     .dtype = node.type.dtype,
                     .form = linear_form(element.index, strides, Dim(0), rank_),
                     .stream = node.attrs.get<std::int64_t>("stream"),
                     .args = std::move(args),
                     .node = element.id});
}

/// The read of a gather's index.
ElementRead OpElements::gathered_index(const OpElement& element) const {
  const Node& node = graph_[element.id];
  const auto first = element.index.begin() + static_cast<std::ptrdiff_t>(dim_of(node));
  return {node.operands[1], AffineIndex(first, first + graph_[node.operands[1]].type.rank()), element.predicate};
}

int OpElements::gather(const OpElement& element) {
  const Node& node = graph_[element.id];
  const ValueId table = node.operands[0];
  const TensorType& type = graph_[table].type;
  const std::size_t dim = dim_of(node);
  const AffineIndex& index = element.index;
  const auto index_rank = static_cast<std::size_t>(graph_[node.operands[1]].type.rank());
  AffineIndex rest(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(dim));
  rest.push_back({.dim = -1, .scale = 0, .offset = 0});
  rest.insert(rest.end(), index.begin() + static_cast<std::ptrdiff_t>(dim + index_rank), index.end());
  const int row = code_.scalar(ScalarOp::cast, i64, element.operands, element.id);
  if (is_index_check(graph_, node)) return index_check(type.shape[0], row, node.type.dtype, element.predicate);
  const Placement& placement = plan_.placement[table];
  std::vector<int> args = {row};
  if (element.predicate != no_predicate) args.push_back(element.predicate);
  return code_.emit({.kind = Kind::gather,
                     .dtype = node.type.dtype,
                     .form = linear_form(rest, type.strides, placement.offset, rank_),
                     .buffer = placement.base,
                     .stride = type.strides[dim],
                     .size = type.shape[static_cast<int>(dim)].unnamed(),
                     .args = std::move(args),
                     .node = element.id});
}

int OpElements::row_sum(ValueId id, const AffineIndex& index, int predicate) {
  const Node& node = graph_[id];
  const auto dim =
      static_cast<std::size_t>(rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank()));
  const auto index_rank = static_cast<std::size_t>(graph_[node.operands[0]].type.rank());
  AffineIndex rest(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(dim));
  rest.insert(rest.end(), index_rank, {.dim = -1, .scale = 0, .offset = 0});
  rest.insert(rest.end(), index.begin() + static_cast<std::ptrdiff_t>(dim + 1), index.end());
  const auto bound = [&](std::int64_t next) {
    return code_.emit({.kind = Kind::load,
                       .dtype = i64,
                       .form = linear_form({index[dim]}, {Dim(1)}, Dim(next), rank_),
                       .buffer = id,
                       .args = predicate == no_predicate ? std::vector<int>{} : std::vector{predicate}});
  };
  const TensorType& updates = graph_[node.operands[1]].type;
  const Placement& placement = plan_.placement[node.operands[1]];
  return code_.emit({.kind = Kind::row_sum,
                     .dtype = node.type.dtype,
                     .form = linear_form(rest, updates.strides, placement.offset, rank_),
                     .buffer = placement.base,
                     .stride = index_rank == 0 ? Dim(0) : updates.strides[dim + index_rank - 1],
                     .size = start_of_positions(node),
                     .args = {bound(0), bound(1)},
                     .node = id});
}

int OpElements::index_check(const Dim& size, int index, DType dtype, int predicate) {
  std::vector<int> args = {index};
  if (predicate != no_predicate) args.push_back(predicate);
  const int value =
      code_.emit({.kind = Kind::checked, .dtype = i64, .size = size.unnamed(), .args = std::move(args)});
  return dtype == i64 ? value : code_.scalar(ScalarOp::cast, dtype, {value}, {});
}

int OpElements::in_bounds(const AffineComponent& component, const Dim& size, int predicate) {
  const int inside = code_.emit({.kind = Kind::in_bounds,
                                 .dtype = boolean,
                                 .form = linear_form({component}, {Dim(1)}, Dim(0), rank_),
                                 .size = size.unnamed()});
  return predicate == no_predicate ? inside : code_.scalar(ScalarOp::logical_and, boolean, {inside, predicate}, {});
}

/// The element of operand i of a concat, at its position in that operand.
ElementRead OpElements::concat_part(OpElement& element, std::size_t i) {
  const Node& node = graph_[element.id];
  const std::size_t dim = dim_of(node);
  AffineIndex at = element.index;
  at[dim].offset = at[dim].offset - element.start;
  const Dim& size = graph_[node.operands[i]].type.shape[static_cast<int>(dim)];
  element.start = element.start + size.unnamed();
  element.inside.push_back(in_bounds(at[dim], size, element.predicate));
  return {node.operands[i], std::move(at), element.inside.back()};
}

int OpElements::concat(const OpElement& element) {
  int value = element.operands.back();
  for (std::size_t i = element.operands.size() - 1; i-- > 0;)
    value = code_.scalar(ScalarOp::select, graph_[element.id].type.dtype,
                         {element.inside[i], element.operands[i], value}, element.id);
  return value;
}

/// The element of a pad's operand, at its position in that operand.
ElementRead OpElements::padded(OpElement& element) {
  const Node& node = graph_[element.id];
  const std::size_t dim = dim_of(node);
  AffineIndex at = element.index;
  at[dim].offset = at[dim].offset - node.attrs.get<Dim>("low").unnamed();
  const Dim& size = graph_[node.operands[0]].type.shape[static_cast<int>(dim)];
  element.inside.push_back(in_bounds(at[dim], size, element.predicate));
  return {node.operands[0], std::move(at), element.inside.back()};
}

int OpElements::pad(const OpElement& element) {
  const DType dtype = graph_[element.id].type.dtype;
  return code_.scalar(ScalarOp::select, dtype, {element.inside[0], element.operands[0], code_.constant(0, dtype)},
                      element.id);
}

}  // namespace lathe
