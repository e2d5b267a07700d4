#include "passes/lowering/elementwise/elementwise_program.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/constants.h"
#include "passes/fusion/reads.h"
#include "passes/lowering/elementwise/op_elements.h"

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

/// Builds the elementwise program of one region or one operand. Follows views and inlined nodes to the values that
/// they read; OpElements emits the code of each op.
class Writer {
 public:
  /// `row`: the domain dim that inlined reductions fold; -1 if there are none.
  Writer(const Graph& graph, const FusionPlan& plan, Shape domain, RegionKind kind = RegionKind::rows, int row = -1)
      : graph_(graph),
        plan_(plan),
        kind_(kind),
        rank_(domain.rank()),
        row_(row),
        code_(std::move(domain)),
        ops_(graph, plan, code_, rank_) {}

  void member(ValueId id) {
    const Node& node = graph_[id];
    int value = 0;
    if (node.op->as<Contraction>()) {
      value = code_.emit({.kind = Kind::accumulator, .dtype = node.type.dtype, .stream = products_++, .node = id});
      code_.program().depends[value] = all_dims();
    } else if (const auto* reduce = node.op->as<Reduce>()) {
      const int operand = read(node.operands[0], spread(plan_.space_dims(id)));
      const bool column = kind_ == RegionKind::attention
                              ? (kept_dims(plan_.member_dims(id)) >> (rank_ - 1) & 1) != 0
                              : kind_ == RegionKind::rows && !folds_trailing_dims(graph_, node);
      value = reduction(node, *reduce, operand, column ? Kind::column : Kind::reduce, id);
      code_.program().depends[value] &= kept_dims(plan_.member_dims(id));
    } else {
      value = node.op == &ops::contiguous
                  ? read(node.operands[0], spread(plan_.member_dims(id)))
                  : run({.id = id, .index = spread(plan_.member_dims(id)), .predicate = no_predicate});
    }
    members_[id] = value;
    if (plan_.is_stored(id)) {
      const AffineIndex index = spread(plan_.member_dims(id));
      const Dim& offset = plan_.placement[id].offset;
      code_.program().stores.push_back({value, id, linear_form(index, node.type.strides, offset, rank_)});
    }
  }

  /// Returns the element of `id` at `index`: a member's value, a load, or newly emitted code.
  int read(ValueId id, const AffineIndex& index) {
    ElementRead reading{id, index, no_predicate};
    const auto known = look_up(reading);
    if (known) return *known;
    return run({.id = reading.id, .index = std::move(reading.index), .predicate = no_predicate});
  }

  ElementwiseProgram finish() {
    code_.program().members = members_;
    return std::move(code_.program());
  }

 private:
  /// Emits an element and, first, the inlined elements that it depends on, in order. Iterative, to bound the stack
  /// depth.
  int run(OpElement first) {
    std::vector<OpElement> open;
    open.push_back(std::move(first));
    while (true) {
      std::optional<ElementRead> reading = next_read(open.back());
      std::optional<int> value = reading ? look_up(*reading) : emit(open.back());
      if (!value) {
        open.push_back({.id = reading->id, .index = std::move(reading->index), .predicate = reading->predicate});
        continue;
      }
      if (!reading) {
        const OpElement& done = open.back();
        if (row_ >= 0) computed_[done.id].push_back({done.index, done.predicate, *value});
        open.pop_back();
      }
      if (open.empty()) return *value;
      open.back().operands.push_back(*value);
    }
  }

  /// Returns the next operand to read for an element, or nullopt if all have been read. An inlined reduction reads
  /// its operand along the row of the domain.
  std::optional<ElementRead> next_read(OpElement& element) {
    const Node& node = graph_[element.id];
    if (!node.op->as<Reduce>()) return ops_.next_read(element);
    if (!element.operands.empty()) return std::nullopt;
    const Shape& shape = graph_[node.operands[0]].type.shape;
    AffineIndex index = element.index;
    for (const int d : reduced_dims(graph_, node)) {
      if (shape[d].is(1)) continue;
      LATHE_ASSERT(row_ >= 0 && shape[d] == code_.program().domain[row_]);
      index[static_cast<std::size_t>(d)] = {.dim = row_, .scale = 1, .offset = 0};
    }
    return ElementRead{node.operands[0], std::move(index), no_predicate};
  }

  /// Emits an element whose operands are known.
  int emit(OpElement& element) {
    const Node& node = graph_[element.id];
    const auto* reduce = node.op->as<Reduce>();
    if (!reduce) return ops_.emit(element);
    const int value = reduction(node, *reduce, element.operands[0], Kind::reduce, element.id);
    code_.program().depends[value] &= ~(std::uint64_t{1} << row_);
    return value;
  }

  int reduction(const Node& node, const Reduce& reduce, int operand, Kind kind, ValueId id) {
    return code_.emit({.kind = kind,
                       .dtype = node.type.dtype,
                       .value = reduce.identity,
                       .op = reduce.combine,
                       .args = {operand},
                       .node = id});
  }

  /// Follows views. Returns a member's value, a constant or a load, or nullopt if the element must be computed here.
  std::optional<int> look_up(ElementRead& reading) {
    while (true) {
      const Node& node = graph_[reading.id];
      const Placement& placement = plan_.placement[reading.id];
      const Node& base = graph_[placement.base];
      const bool inlined = plan_.is_inlined(placement.base);
      if (inlined && is_flat_iota(base)) return position(placement, node.type, reading.index);
      if (is_splat(base)) return code_.constant(constant_values(base)[0], base.type.dtype);
      const auto member = members_.find(placement.base);
      if (member != members_.end() && reading.id == placement.base) return member->second;
      if (member == members_.end() && !inlined) return load(placement, node.type, reading.index, reading.predicate);
      const bool shown = reading.id != placement.base || node.op == &ops::contiguous;
      if (!shown) return computed_before(reading);
      if (reading.id != placement.base) reading.index = view_index(node, reading.index);
      reading.id = node.operands[0];
    }
  }

  /// Returns the element if it was computed before: the values of a row are read by several others.
  std::optional<int> computed_before(const ElementRead& reading) const {
    const auto of_node = computed_.find(reading.id);
    if (of_node == computed_.end()) return std::nullopt;
    const auto same = [](const AffineComponent& a, const AffineComponent& b) { return a == b; };
    for (const Computed& known : of_node->second)
      if (known.predicate == reading.predicate && std::ranges::equal(known.index, reading.index, same))
        return known.value;
    return std::nullopt;
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

  const Graph& graph_;
  const FusionPlan& plan_;
  RegionKind kind_;
  int rank_, row_;
  ElementwiseBuilder code_;
  OpElements ops_;
  struct Computed {
    AffineIndex index;
    int predicate, value;
  };
  std::map<ValueId, std::vector<Computed>> computed_;  // inlined elements, if the domain has a row
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
                               const std::vector<int>& dims, const Shape& domain, int row) {
  Writer writer(graph, plan, domain, RegionKind::rows, row);
  AffineIndex index;
  for (const int d : dims) index.push_back({.dim = d, .scale = d < 0 ? 0 : 1, .offset = 0});
  const int result = writer.read(operand, index);
  return {writer.finish(), result};
}

}  // namespace lathe
