#include "passes/lowering/point_program.h"

#include <cmath>

#include "ir/kernel/scalar_eval.h"
#include "ir/ops/list.h"
#include "ir/ops/rules.h"
#include "passes/fusion/reads.h"

namespace lathe {

using namespace ir;
using Kind = PointInstruction::Kind;

bool PointInstruction::operator==(const PointInstruction& o) const {
  const bool same_value = value == o.value || (value != value && o.value != o.value);
  return kind == o.kind && dtype == o.dtype && same_value && std::signbit(value) == std::signbit(o.value) &&
         form == o.form && buffer == o.buffer && stride == o.stride && size == o.size && stream == o.stream &&
         op == o.op && args == o.args;
}

std::int64_t PointProgram::work() const {
  constexpr std::int64_t library_call = 200;
  std::int64_t work = 0;
  for (const PointInstruction& i : code)
    work += i.kind == PointInstruction::Kind::scalar && i.dtype == f64 && kernel::is_transcendental(i.op)
                ? library_call
                : 1;
  return work;
}

Dim PointProgram::points(const std::vector<int>& dims) const {
  Dim product(1);
  for (const int d : dims) product = product * domain[d].unnamed();
  return product;
}

namespace {

constexpr int no_predicate = -1;

/// Writes the point program of one region, or of one operand.
class Writer {
 public:
  Writer(const Graph& graph, const FusionPlan& plan, Shape domain, RegionKind kind = RegionKind::rows)
      : graph_(graph), plan_(plan), kind_(kind), rank_(domain.rank()) {
    program_.domain = std::move(domain);
  }

  void member(ValueId id) {
    const Node& node = graph_[id];
    int value;
    if (node.op->as<Contraction>()) {
      value = emit({.kind = Kind::accumulator, .dtype = node.type.dtype, .stream = products_++, .node = id});
      program_.depends[static_cast<std::size_t>(value)] = all_dims();
    } else if (const auto* reduce = node.op->as<Reduce>()) {
      const int operand = read(node.operands[0], spread(plan_.space_dims(id)), no_predicate);
      const bool column = kind_ == RegionKind::attention
                              ? (kept_dims(plan_.member_dims(id)) >> (rank_ - 1) & 1) != 0
                              : kind_ == RegionKind::rows && !folds_trailing_dims(graph_, node);
      value = emit({.kind = column ? Kind::column : Kind::reduce,
                    .dtype = node.type.dtype,
                    .value = reduce->identity,
                    .op = reduce->combine,
                    .args = {operand},
                    .node = id});
      program_.depends[static_cast<std::size_t>(value)] &= kept_dims(plan_.member_dims(id));
    } else {
      value = compute(id, spread(plan_.member_dims(id)), no_predicate);
    }
    members_[id] = value;
    if (plan_.is_stored(id)) {
      const AffineIndex index = spread(plan_.member_dims(id));
      program_.stores.push_back({value, id, linear_form(index, node.type.strides, Dim(0), rank_)});
    }
  }

  /// The element of `id` at `index`: a member's value, a load, or computed here.
  int read(ValueId id, const AffineIndex& index, int predicate) {
    const Node& node = graph_[id];
    const Placement& placement = plan_.placement[static_cast<std::size_t>(id.index)];
    const Node& base = graph_[placement.base];
    if (is_splat(base)) return constant(base.attrs.get<std::vector<double>>("values")[0], base.type.dtype);
    if (const auto at = members_.find(placement.base); at != members_.end()) {
      if (id == placement.base) return at->second;
      return read(node.operands[0], view_index(node, index), predicate);
    }
    if (!plan_.is_inlined(placement.base)) return load(placement, node.type, index, predicate);
    if (id != placement.base) return read(node.operands[0], view_index(node, index), predicate);
    return compute(id, index, predicate);
  }

  PointProgram finish() {
    program_.members = members_;
    return std::move(program_);
  }

 private:
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

  int emit(PointInstruction instruction) {
    // Each sum over rows has sums of its own, also where two nodes add up the same.
    for (int i = 0; i < program_.size() && instruction.kind != Kind::column; ++i)
      if (program_[i] == instruction) return i;
    std::uint64_t depends = 0;
    for (std::size_t d = 0; d < instruction.form.coefficients.size(); ++d)
      if (!instruction.form.coefficients[d].is(0)) depends |= 1ULL << d;
    for (const int arg : instruction.args) depends |= program_.depends[static_cast<std::size_t>(arg)];
    program_.code.push_back(std::move(instruction));
    program_.depends.push_back(depends);
    return program_.size() - 1;
  }

  int constant(double value, DType dtype) { return emit({.kind = Kind::constant, .dtype = dtype, .value = value}); }

  int scalar(ScalarOp op, DType dtype, std::vector<int> args, ValueId node) {
    return emit({.kind = Kind::scalar, .dtype = dtype, .op = op, .args = std::move(args), .node = node});
  }

  int load(const Placement& placement, const TensorType& type, const AffineIndex& index, int predicate) {
    std::vector<int> args;
    if (predicate != no_predicate) args.push_back(predicate);
    return emit({.kind = Kind::load,
                 .dtype = type.dtype,
                 .form = linear_form(index, type.strides, placement.offset, rank_),
                 .buffer = placement.base,
                 .args = std::move(args)});
  }

  int compute(ValueId id, const AffineIndex& index, int predicate) {
    const Node& node = graph_[id];
    if (node.op == &ops::contiguous) return read(node.operands[0], index, predicate);
    if (const auto* elementwise = node.op->as<Elementwise>()) {
      std::vector<int> args;
      for (const ValueId operand : node.operands)
        args.push_back(read(operand, broadcast_index(graph_[operand].type.shape, node.type.shape, index), predicate));
      return scalar(elementwise->op, node.type.dtype, std::move(args), id);
    }
    LATHE_ASSERT(node.op->as<Custom>());
    switch (node.op->as<Custom>()->kind) {
      case CustomKind::iota: return iota(id, index);
      case CustomKind::random: return random(id, index);
      case CustomKind::gather: return gather(id, index, predicate);
      case CustomKind::scatter_add: return row_sum(id, index, predicate);
      case CustomKind::concat: return concat(id, index, predicate);
      case CustomKind::pad: return pad(id, index, predicate);
      case CustomKind::constant:
      case CustomKind::view_as_complex:
      case CustomKind::view_as_real: break;
    }
    throw InternalError("a point program met " + std::string(node.op->name.value));
  }

  std::size_t dim_of(const Node& node) const {
    const int rank = graph_[node.operands.empty() ? ValueId{0} : node.operands[0]].type.rank();
    return static_cast<std::size_t>(rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank));
  }

  int iota(ValueId id, const AffineIndex& index) {
    const Node& node = graph_[id];
    const int dim = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
    const AffineIndex one = {index[static_cast<std::size_t>(dim)]};
    const int value = emit({.kind = Kind::index, .dtype = i64, .form = linear_form(one, {Dim(1)}, Dim(0), rank_)});
    return node.type.dtype == i64 ? value : scalar(ScalarOp::cast, node.type.dtype, {value}, id);
  }

  int random(ValueId id, const AffineIndex& index) {
    const Node& node = graph_[id];
    const Placement& state = plan_.placement[static_cast<std::size_t>(node.operands[0].index)];
    const Dim stride = graph_[node.operands[0]].type.strides[0];
    const auto word = [&](const Dim& offset) {
      Linear form = linear_form({}, {}, offset, rank_);
      return emit({.kind = Kind::load, .dtype = i64, .form = std::move(form), .buffer = state.base});
    };
    return emit({.kind = Kind::random,
                 .dtype = node.type.dtype,
                 .form = linear_form(index, row_major_strides(node.type.shape), Dim(0), rank_),
                 .stream = node.attrs.get<std::int64_t>("stream"),
                 .args = {word(state.offset), word(state.offset + stride)},
                 .node = id});
  }

  int gather(ValueId id, const AffineIndex& index, int predicate) {
    const Node& node = graph_[id];
    const ValueId table = node.operands[0], indices = node.operands[1];
    const TensorType& type = graph_[table].type;
    const std::size_t dim = dim_of(node);
    const auto index_rank = static_cast<std::size_t>(graph_[indices].type.rank());
    const AffineIndex at(index.begin() + static_cast<std::ptrdiff_t>(dim),
                         index.begin() + static_cast<std::ptrdiff_t>(dim + index_rank));
    AffineIndex rest(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(dim));
    rest.push_back({.dim = -1, .scale = 0, .offset = 0});
    rest.insert(rest.end(), index.begin() + static_cast<std::ptrdiff_t>(dim + index_rank), index.end());
    const int row = scalar(ScalarOp::cast, i64, {read(indices, at, predicate)}, id);
    if (is_index_check(graph_, node)) return index_check(type.shape[0], row, node.type.dtype, predicate);
    const Placement& placement = plan_.placement[static_cast<std::size_t>(table.index)];
    std::vector<int> args = {row};
    if (predicate != no_predicate) args.push_back(predicate);
    return emit({.kind = Kind::gather,
                 .dtype = node.type.dtype,
                 .form = linear_form(rest, type.strides, placement.offset, rank_),
                 .buffer = placement.base,
                 .stride = type.strides[dim],
                 .size = type.shape[static_cast<int>(dim)].unnamed(),
                 .args = std::move(args),
                 .node = id});
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
      return emit({.kind = Kind::load,
                   .dtype = i64,
                   .form = linear_form({index[dim]}, {Dim(1)}, Dim(next), rank_),
                   .buffer = id,
                   .args = predicate == no_predicate ? std::vector<int>{} : std::vector{predicate}});
    };
    const TensorType& updates = graph_[node.operands[1]].type;
    const Placement& placement = plan_.placement[static_cast<std::size_t>(node.operands[1].index)];
    return emit({.kind = Kind::row_sum,
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
    const int value = emit({.kind = Kind::checked, .dtype = i64, .size = size.unnamed(), .args = std::move(args)});
    return dtype == i64 ? value : scalar(ScalarOp::cast, dtype, {value}, {});
  }

  int in_bounds(const AffineComponent& component, const Dim& size, int predicate) {
    const int inside = emit({.kind = Kind::in_bounds,
                             .dtype = boolean,
                             .form = linear_form({component}, {Dim(1)}, Dim(0), rank_),
                             .size = size.unnamed()});
    return predicate == no_predicate ? inside : scalar(ScalarOp::logical_and, boolean, {inside, predicate}, {});
  }

  int concat(ValueId id, const AffineIndex& index, int predicate) {
    const Node& node = graph_[id];
    const std::size_t dim = dim_of(node);
    Dim start(0);
    std::vector<std::pair<int, int>> parts;  // inside, value
    for (const ValueId operand : node.operands) {
      AffineIndex at = index;
      at[dim].offset = at[dim].offset - start;
      const Dim& size = graph_[operand].type.shape[static_cast<int>(dim)];
      start = start + size.unnamed();
      const int inside = in_bounds(at[dim], size, predicate);
      parts.emplace_back(inside, read(operand, at, inside));
    }
    int value = parts.back().second;
    for (auto part = parts.rbegin() + 1; part != parts.rend(); ++part)
      value = scalar(ScalarOp::select, node.type.dtype, {part->first, part->second, value}, id);
    return value;
  }

  int pad(ValueId id, const AffineIndex& index, int predicate) {
    const Node& node = graph_[id];
    const std::size_t dim = dim_of(node);
    AffineIndex at = index;
    at[dim].offset = at[dim].offset - node.attrs.get<Dim>("low").unnamed();
    const int inside = in_bounds(at[dim], graph_[node.operands[0]].type.shape[static_cast<int>(dim)], predicate);
    const int value = read(node.operands[0], at, inside);
    return scalar(ScalarOp::select, node.type.dtype, {inside, value, constant(0, node.type.dtype)}, id);
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  RegionKind kind_;
  int rank_;
  PointProgram program_;
  std::map<ValueId, int> members_;
  std::int64_t products_ = 0;
};

}  // namespace

Dim start_of_positions(const Node& scatter) {
  const int dim = rules::normalize_axis(scatter.attrs.get<std::int64_t>("dim"), scatter.type.rank());
  return scatter.type.shape[dim].unnamed() + Dim(2);
}

PointProgram region_program(const Graph& graph, const FusionPlan& plan, const Region& region) {
  Writer writer(graph, plan, region.domain, region.kind);
  for (const ValueId member : region.members) writer.member(member);
  return writer.finish();
}

OperandProgram operand_program(const Graph& graph, const FusionPlan& plan, ValueId operand,
                               const std::vector<int>& dims, const Shape& domain) {
  Writer writer(graph, plan, domain);
  AffineIndex index;
  for (const int d : dims) index.push_back({.dim = d, .scale = d < 0 ? 0 : 1, .offset = 0});
  const int result = writer.read(operand, index, -1);
  return {writer.finish(), result};
}

}  // namespace lathe
