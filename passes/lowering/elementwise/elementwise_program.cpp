#include "passes/lowering/elementwise/elementwise_program.h"

#include <cmath>
#include <optional>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/constants.h"
#include "passes/fusion/reads.h"
#include "passes/lowering/elementwise/elementwise_builder.h"

namespace lathe {

using namespace ir;
using Kind = ElementwiseInstruction::Kind;

bool ElementwiseInstruction::operator==(const ElementwiseInstruction& o) const {
  const double real = value.real(), other = o.value.real();
  const bool same_value = value == o.value || (std::isnan(real) && std::isnan(other));
  return kind == o.kind && dtype == o.dtype && same_value && std::signbit(real) == std::signbit(other) &&
         form == o.form && buffer == o.buffer && stride == o.stride && size == o.size && stream == o.stream &&
         op == o.op && args == o.args;
}

std::int64_t ElementwiseProgram::work() const {
  constexpr std::int64_t library_work = 200;  // a call of the C library: transcendental functions in f64
  std::int64_t work = 0;
  for (const ElementwiseInstruction& i : code)
    work += i.kind == ElementwiseInstruction::Kind::scalar && i.dtype == f64 && traits(i.op).transcendental
                ? library_work
                : 1;
  return work;
}

Dim ElementwiseProgram::points(const std::vector<int>& dims) const {
  Dim product(1);
  for (const int d : dims) product = product * domain[d].unnamed();
  return product;
}

namespace {

constexpr int no_predicate = -1;

/// Builds the elementwise program of one region or one operand.
class Writer {
 public:
  Writer(const Graph& graph, const FusionPlan& plan, Shape domain, RegionKind kind = RegionKind::rows)
      : graph_(graph), plan_(plan), kind_(kind), rank_(domain.rank()), code_(std::move(domain)) {}

  void member(ValueId id) {
    const Node& node = graph_[id];
    int value = 0;
    if (node.op->as<Contraction>()) {
      value = code_.emit({.kind = Kind::accumulator, .dtype = node.type.dtype, .stream = products_++, .node = id});
      code_.program().depends[static_cast<std::size_t>(value)] = all_dims();
    } else if (const auto* reduce = node.op->as<Reduce>()) {
      const int operand = read(node.operands[0], spread(plan_.space_dims(id)));
      const bool column = kind_ == RegionKind::attention
                              ? (kept_dims(plan_.member_dims(id)) >> (rank_ - 1) & 1) != 0
                              : kind_ == RegionKind::rows && !folds_trailing_dims(graph_, node);
      value = code_.emit({.kind = column ? Kind::column : Kind::reduce,
                          .dtype = node.type.dtype,
                          .value = reduce->identity,
                          .op = reduce->combine,
                          .args = {operand},
                          .node = id});
      code_.program().depends[static_cast<std::size_t>(value)] &= kept_dims(plan_.member_dims(id));
    } else {
      value = node.op == &ops::contiguous
                  ? read(node.operands[0], spread(plan_.member_dims(id)))
                  : run({.id = id, .index = spread(plan_.member_dims(id)), .predicate = no_predicate});
    }
    members_[id] = value;
    if (plan_.is_stored(id)) {
      const AffineIndex index = spread(plan_.member_dims(id));
      const Dim& offset = plan_.placement[static_cast<std::size_t>(id.index)].offset;
      code_.program().stores.push_back({value, id, linear_form(index, node.type.strides, offset, rank_)});
    }
  }

  /// Returns the element of `id` at `index`: a member's value, a load, or newly emitted code.
  int read(ValueId id, const AffineIndex& index) {
    Reading reading{id, index, no_predicate};
    const auto known = look_up(reading);
    if (known) return *known;
    return run({.id = reading.id, .index = std::move(reading.index), .predicate = no_predicate});
  }

  ElementwiseProgram finish() {
    code_.program().members = members_;
    return std::move(code_.program());
  }

 private:
  /// A request for an element; `predicate` says where it is needed.
  struct Reading {
    ValueId id;
    AffineIndex index;
    int predicate;
  };

  /// An element whose operands are being computed.
  struct Computing {
    ValueId id;
    AffineIndex index;
    int predicate;
    std::vector<int> operands = {};  ///< operands computed so far
    std::vector<int> inside = {};    ///< concat and pad: for each operand, whether the element is inside it
    Dim start = 0;                   ///< concat: start of the next operand
  };

  /// Emits an element and, first, the inlined elements that it depends on, in order. Iterative, to bound the stack
  /// depth.
  int run(Computing first) {
    std::vector<Computing> open;
    open.push_back(std::move(first));
    while (true) {
      std::optional<Reading> reading = next_reading(open.back());
      std::optional<int> value = reading ? look_up(*reading) : finish_element(open.back());
      if (!value) {
        open.push_back({.id = reading->id, .index = std::move(reading->index), .predicate = reading->predicate});
        continue;
      }
      if (!reading) open.pop_back();
      if (open.empty()) return *value;
      open.back().operands.push_back(*value);
    }
  }

  /// Follows views. Returns a member's value, a constant or a load, or nullopt if the element must be computed here.
  std::optional<int> look_up(Reading& reading) {
    while (true) {
      const Node& node = graph_[reading.id];
      const Placement& placement = plan_.placement[static_cast<std::size_t>(reading.id.index)];
      const Node& base = graph_[placement.base];
      const bool inlined = plan_.is_inlined(placement.base);
      if (inlined && is_flat_iota(base)) return position(placement, node.type, reading.index);
      if (is_splat(base)) return code_.constant(constant_values(base)[0], base.type.dtype);
      const auto member = members_.find(placement.base);
      if (member != members_.end() && reading.id == placement.base) return member->second;
      if (member == members_.end() && !inlined) return load(placement, node.type, reading.index, reading.predicate);
      const bool shown = reading.id != placement.base || node.op == &ops::contiguous;
      if (!shown) return std::nullopt;
      if (reading.id != placement.base) reading.index = view_index(node, reading.index);
      reading.id = node.operands[0];
    }
  }

  std::uint64_t all_dims() const { return rank_ >= 64 ? ~0ULL : (1ULL << rank_) - 1; }

  static std::uint64_t kept_dims(const std::vector<int>& dims) {
    std::uint64_t kept = 0;
    for (const int d : dims)
      if (d >= 0) kept |= 1ULL << d;
    return kept;
  }

  static AffineIndex spread(const std::vector<int>& dims) {
    AffineIndex index;
    for (const int d : dims) index.push_back({.dim = d, .scale = d < 0 ? 0 : 1, .offset = 0});
    return index;
  }

  AffineIndex view_index(const Node& view, const AffineIndex& index) const {
    return through_view(view.op->as<View>()->map(graph_, view), index);
  }

  int load(const Placement& placement, const TensorType& type, const AffineIndex& index, int predicate) {
    std::vector<int> args;
    if (predicate != no_predicate) args.push_back(predicate);
    return code_.emit({.kind = Kind::load,
                       .dtype = type.dtype,
                       .form = linear_form(index, type.strides, placement.offset, rank_),
                       .buffer = placement.base,
                       .args = std::move(args)});
  }

  /// An element of a view of a flat iota equals its position in the iota. Returns that position.
  int position(const Placement& placement, const TensorType& type, const AffineIndex& index) {
    const int value = code_.emit(
        {.kind = Kind::index, .dtype = i64, .form = linear_form(index, type.strides, placement.offset, rank_)});
    return type.dtype == i64 ? value : code_.scalar(ScalarOp::cast, type.dtype, {value}, placement.base);
  }

  /// Returns the next operand to read for an element, or nullopt if all operands have been read.
  std::optional<Reading> next_reading(Computing& element) {
    const Node& node = graph_[element.id];
    const std::size_t i = element.operands.size();
    if (node.op->as<Elementwise>()) {
      if (i == node.operands.size()) return std::nullopt;
      const ValueId operand = node.operands[i];
      return Reading{operand, broadcast_index(graph_[operand].type.shape, node.type.shape, element.index),
                     element.predicate};
    }
    LATHE_ASSERT(node.op->as<Custom>());
    switch (node.op->as<Custom>()->kind) {
      case CustomKind::iota:
      case CustomKind::random:
      case CustomKind::scatter_add: return std::nullopt;
      case CustomKind::random_at: return i == 0 ? std::optional(drawn_number(element)) : std::nullopt;
      case CustomKind::gather: return i == 0 ? std::optional(gathered_index(element)) : std::nullopt;
      case CustomKind::concat:
        return i < node.operands.size() ? std::optional(concat_part(element, i)) : std::nullopt;
      case CustomKind::pad: return i == 0 ? std::optional(padded(element)) : std::nullopt;
      case CustomKind::constant:
      case CustomKind::collective:
      case CustomKind::update_rows:
      case CustomKind::cumsum:
      case CustomKind::argsort:
      case CustomKind::top_k:
      case CustomKind::cholesky:
      case CustomKind::solve_triangular:
      case CustomKind::grouped_matmul:
      case CustomKind::segment_outer:
      case CustomKind::view_as_complex:
      case CustomKind::view_as_real: break;
    }
    throw InternalError("an elementwise program met " + std::string(node.op->name.value));
  }

  /// Emits the element once all operands are available.
  int finish_element(Computing& element) {
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
      case CustomKind::argsort:
      case CustomKind::top_k:
      case CustomKind::cholesky:
      case CustomKind::solve_triangular:
      case CustomKind::grouped_matmul:
      case CustomKind::segment_outer:
      case CustomKind::view_as_complex:
      case CustomKind::view_as_real: break;
    }
    throw InternalError("an elementwise program met " + std::string(node.op->name.value));
  }

  std::size_t dim_of(const Node& node) const {
    const int rank = graph_[node.operands.empty() ? ValueId{0} : node.operands[0]].type.rank();
    return static_cast<std::size_t>(rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank));
  }

  int iota(ValueId id, const AffineIndex& index) {
    const Node& node = graph_[id];
    const int dim = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
    const AffineIndex one = {index[static_cast<std::size_t>(dim)]};
    const int value =
        code_.emit({.kind = Kind::index, .dtype = i64, .form = linear_form(one, {Dim(1)}, Dim(0), rank_)});
    return node.type.dtype == i64 ? value : code_.scalar(ScalarOp::cast, node.type.dtype, {value}, id);
  }

  /// The read of a draw's element number.
  Reading drawn_number(const Computing& element) const {
    return {graph_[element.id].operands[1], element.index, element.predicate};
  }

  /// Emits a draw. Its number is computed with these strides unless the op has an operand for it.
  int random(const Computing& element, const std::vector<Dim>& strides) {
    const Node& node = graph_[element.id];
    const Placement& state = plan_.placement[static_cast<std::size_t>(node.operands[0].index)];
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
  Reading gathered_index(const Computing& element) const {
    const Node& node = graph_[element.id];
    const auto first = element.index.begin() + static_cast<std::ptrdiff_t>(dim_of(node));
    return {node.operands[1], AffineIndex(first, first + graph_[node.operands[1]].type.rank()), element.predicate};
  }

  int gather(const Computing& element) {
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
    const Placement& placement = plan_.placement[static_cast<std::size_t>(table.index)];
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

  int row_sum(ValueId id, const AffineIndex& index, int predicate) {
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
    const Placement& placement = plan_.placement[static_cast<std::size_t>(node.operands[1].index)];
    return code_.emit({.kind = Kind::row_sum,
                       .dtype = node.type.dtype,
                       .form = linear_form(rest, updates.strides, placement.offset, rank_),
                       .buffer = placement.base,
                       .stride = index_rank == 0 ? Dim(0) : updates.strides[dim + index_rank - 1],
                       .size = start_of_positions(node),
                       .args = {bound(0), bound(1)},
                       .node = id});
  }

  int index_check(const Dim& size, int index, DType dtype, int predicate) {
    std::vector<int> args = {index};
    if (predicate != no_predicate) args.push_back(predicate);
    const int value =
        code_.emit({.kind = Kind::checked, .dtype = i64, .size = size.unnamed(), .args = std::move(args)});
    return dtype == i64 ? value : code_.scalar(ScalarOp::cast, dtype, {value}, {});
  }

  int in_bounds(const AffineComponent& component, const Dim& size, int predicate) {
    const int inside = code_.emit({.kind = Kind::in_bounds,
                                   .dtype = boolean,
                                   .form = linear_form({component}, {Dim(1)}, Dim(0), rank_),
                                   .size = size.unnamed()});
    return predicate == no_predicate ? inside : code_.scalar(ScalarOp::logical_and, boolean, {inside, predicate}, {});
  }

  /// The element of operand i of a concat, at its position in that operand.
  Reading concat_part(Computing& element, std::size_t i) {
    const Node& node = graph_[element.id];
    const std::size_t dim = dim_of(node);
    AffineIndex at = element.index;
    at[dim].offset = at[dim].offset - element.start;
    const Dim& size = graph_[node.operands[i]].type.shape[static_cast<int>(dim)];
    element.start = element.start + size.unnamed();
    element.inside.push_back(in_bounds(at[dim], size, element.predicate));
    return {node.operands[i], std::move(at), element.inside.back()};
  }

  int concat(const Computing& element) {
    int value = element.operands.back();
    for (std::size_t i = element.operands.size() - 1; i-- > 0;)
      value = code_.scalar(ScalarOp::select, graph_[element.id].type.dtype,
                           {element.inside[i], element.operands[i], value}, element.id);
    return value;
  }

  /// The element of a pad's operand, at its position in that operand.
  Reading padded(Computing& element) {
    const Node& node = graph_[element.id];
    const std::size_t dim = dim_of(node);
    AffineIndex at = element.index;
    at[dim].offset = at[dim].offset - node.attrs.get<Dim>("low").unnamed();
    const Dim& size = graph_[node.operands[0]].type.shape[static_cast<int>(dim)];
    element.inside.push_back(in_bounds(at[dim], size, element.predicate));
    return {node.operands[0], std::move(at), element.inside.back()};
  }

  int pad(const Computing& element) {
    const DType dtype = graph_[element.id].type.dtype;
    return code_.scalar(ScalarOp::select, dtype, {element.inside[0], element.operands[0], code_.constant(0, dtype)},
                        element.id);
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  RegionKind kind_;
  int rank_;
  ElementwiseBuilder code_;
  std::map<ValueId, int> members_;
  std::int64_t products_ = 0;
};

}  // namespace

Dim start_of_positions(const Node& scatter) {
  const int dim = rules::normalize_axis(scatter.attrs.get<std::int64_t>("dim"), scatter.type.rank());
  return scatter.type.shape[dim].unnamed() + Dim(2);
}

ElementwiseProgram region_program(const Graph& graph, const FusionPlan& plan, const Region& region) {
  Writer writer(graph, plan, region.domain, region.kind());
  const auto* attention = std::get_if<AttentionRegion>(&region.form);
  for (const ValueId member : attention ? attention->scores : region.members) writer.member(member);
  return writer.finish();
}

OperandProgram operand_program(const Graph& graph, const FusionPlan& plan, ValueId operand,
                               const std::vector<int>& dims, const Shape& domain) {
  Writer writer(graph, plan, domain);
  AffineIndex index;
  for (const int d : dims) index.push_back({.dim = d, .scale = d < 0 ? 0 : 1, .offset = 0});
  const int result = writer.read(operand, index);
  return {writer.finish(), result};
}

}  // namespace lathe
