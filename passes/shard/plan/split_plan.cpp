#include "passes/shard/plan/split_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/support/visible.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"

namespace lathe::shard {

using namespace ir;

SplitPlan::SplitPlan(const CutGraph& graph, const FactoredGraph& factored, const Mesh& mesh,
                     std::span<const Split> splits)
    : graph_(graph.graph),
      cuts_(graph.cuts),
      dims_(factored),
      factors_(factored.factors),
      mesh_(mesh),
      axes_of_(static_cast<std::size_t>(factored.factors.count())) {
  for (const Split& split : splits) seed(split);
  check_repeats();
}

namespace {

const std::map<ValueId, Cut> no_cuts;

}  // namespace

SplitPlan::SplitPlan(const SplitPlan& outer, const Graph& body, const GraphDims& dims)
    : graph_(body),
      cuts_(no_cuts),
      dims_(dims),
      factors_(outer.factors_),
      mesh_(outer.mesh_),
      axes_of_(outer.axes_of_),
      origins_(outer.origins_),
      substituted_(outer.substituted_) {}

SplitPlan SplitPlan::body(ValueId loop) const {
  return SplitPlan(*this, loop_body(graph_[loop]).graph(), *dims_.bodies.at(loop));
}

const std::vector<int>& SplitPlan::axes_of(Factor factor) const { return axes_of_[factors_.find(factor)]; }

/// "scores: f32[B, h=8, T, T] (softmax at gpt.cpp:14)"
std::string SplitPlan::describe(ValueId id) const {
  const Node& node = graph_[id];
  const std::string type = node.type.to_string();
  const std::string what = node.name.empty() ? type : fmt::format("{}: {}", node.name, type);
  return fmt::format("{} ({} at {})", what, node.op->name.value, node.loc.place());
}

const Cut* SplitPlan::cut(ValueId id) const {
  const auto found = cuts_.find(id);
  return found == cuts_.end() ? nullptr : &found->second;
}

std::vector<int> SplitPlan::axes_of_cut(ValueId id) const {
  const Cut& its = *cut(id);
  const ValueId operand = graph_[id].operands[0];
  const auto [split, whole] = its.kind == Cut::Kind::gather ? std::pair(operand, id) : std::pair(id, operand);
  std::vector<int> axes = axes_of(split, its.dim);
  std::erase_if(axes, [&](int axis) { return is_split(whole, its.dim, axis); });
  return axes;
}

/// Returns the factors that cuts keep whole although dims with their name are split.
std::set<Factor> SplitPlan::whole_sides() const {
  std::set<Factor> whole;
  for (const auto& [id, cut] : cuts_) {
    const FactorList split = factors(cut.kind == Cut::Kind::gather ? graph_[id].operands[0] : id, cut.dim);
    for (const Factor factor : factors(cut.kind == Cut::Kind::gather ? id : graph_[id].operands[0], cut.dim))
      if (std::find(split.begin(), split.end(), factor) == split.end()) whole.insert(factor);
  }
  return whole;
}

void SplitPlan::seed(const Split& split) {
  const int axis = mesh_.find(split.axis);
  bool found = false;
  const std::set<Factor> whole = whole_sides();
  std::set<std::string> names;
  for (const ValueId id : all_values(graph_)) {
    const Node& node = graph_[id];
    // Values without operands are split like their readers.
    if (node.operands.empty() && !node.op->as<Argument>()) continue;
    for (int d = 0; d < node.type.rank(); ++d) {
      const Dim& size = node.type.shape[d];
      if (!size.name().empty()) names.insert(size.name());
      if (size.name() != split.dim) continue;
      found = true;
      const FactorList list = factors(id, d);
      if (mesh_[axis].ranks == 1 || list.empty()) continue;
      if (std::any_of(list.begin(), list.end(), [&](Factor factor) { return whole.contains(factor); })) continue;
      const auto free =
          std::find_if(list.begin(), list.end(), [this](Factor factor) { return !factors_.obstacle(factor); });
      assign(free == list.end() ? list.front() : *free, axis, split.dim, id, d);
    }
  }
  if (found) return;
  throw UserError(fmt::format("@{} has no dim named {}", graph_.name, visible(split.dim)), "shard_name",
                  did_you_mean_or_list(split.dim, {names.begin(), names.end()}, "its dims are"));
}

void SplitPlan::require_free(Factor factor, int axis, const std::string& name, ValueId at, int dim) const {
  const Node& node = graph_[at];
  const Factors& all = factors_;
  const std::string what = fmt::format("{} is split over {}, on dim {} of {}", node.type.shape[dim].to_string(),
                                       mesh_[axis].name, dim, describe(at));
  if (const auto found = origins_.find(factor); found != origins_.end() && found->second.name != name)
    throw UserError(node.loc, "shard",
                    fmt::format("{}, and it is the same dim as {}, which is split over {}", what, found->second.name,
                                mesh_[axes_of(factor).front()].name),
                    "shard_axis",
                    fmt::format("split it over one axis, or give both splits by one name: {0}:{1},{0}:{2}", name,
                                mesh_[axes_of(factor).front()].name, mesh_[axis].name));
  if (const auto& obstacle = all.obstacle(factor)) {
    const Node& other = graph_[obstacle->node];
    throw UserError(
        node.loc, "shard",
        fmt::format("{}, but {} needs all of it: {}", what, describe(obstacle->node), obstacle->why), "shard_gather",
        fmt::format(
            "a gather there would send {} bytes to every process, and Lathe adds no gather by itself: leave the dim "
            "whole, or write the op at {} so that it takes whole blocks of it",
            (other.type.shape.numel() * Dim(static_cast<std::int64_t>(size_in_bytes(other.type.dtype)))).to_string(),
            other.loc.place()));
  }
}

void SplitPlan::assign(Factor factor, int axis, const std::string& name, ValueId at, int dim) {
  std::vector<int>& axes = axes_of_[factor];
  if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return;
  require_free(factor, axis, name, at, dim);
  const Dim& size = factors_.size(factor);
  const Dim& shown = graph_[at].type.shape[dim];
  std::int64_t ranks = mesh_[axis].ranks;
  for (const int before : axes) ranks *= mesh_[before].ranks;
  std::string axis_names;
  for (const int before : axes) axis_names += mesh_[before].name + "*";
  axis_names += mesh_[axis].name;
  const auto part = [&](const std::string& what, const std::string& hint) {
    throw UserError(
        graph_[at].loc, "shard",
        fmt::format("{} does not divide over {}={} on dim {} of {}", what, axis_names, ranks, dim, describe(at)),
        "shard_divide", hint);
  };
  if (const auto number = size.value(); number && *number % ranks != 0) {
    const std::int64_t padded = (*number / ranks + 1) * ranks;
    if (shown == size)
      part(shown.to_string(), fmt::format("pad it to {}", padded));
    else
      part(fmt::format("{}, which ops part into {} times {}, ", shown.to_string(), *number,
                       shown.divided_by(size)->to_string()),
           fmt::format("make the outer part a multiple of {}", ranks));
  }
  if (!size.value() && !substitute(size, ranks, mesh_[axis].name, shown.name()))
    part(size.to_string(), "split a dim that is one unknown or a multiple of it");
  axes.push_back(axis);
  origins_.emplace(factor, Origin{name, at});
}

/// Expresses an unknown of `size` by an unknown of each process: B is 4*B@data. Returns false if not every term has
/// one unknown.
bool SplitPlan::substitute(const Dim& size, std::int64_t ranks, const std::string& axis,
                           const std::string& preferred) {
  if (whole(size).divided_by(Dim(ranks))) return true;
  std::vector<std::string> unknowns = size.unknowns();
  std::stable_partition(unknowns.begin(), unknowns.end(), [&](const std::string& name) { return name == preferred; });
  for (const std::string& name : unknowns) {
    if (!size.divided_by(Dim(name))) continue;
    const auto known = substituted_.find(name);
    const bool first = known == substituted_.end();
    const std::int64_t before = first ? 1 : *known->second.divided_by(Dim(known->second.unknowns()[0]))->value();
    const std::string local = fmt::format("{}@{}", first ? name : known->second.unknowns()[0], axis);
    substituted_.insert_or_assign(name, Dim(local).unnamed() * Dim(std::lcm(before, ranks)));
    return true;
  }
  return false;
}

bool SplitPlan::is_split(ValueId id, int dim, int axis) const {
  const FactorList list = factors(id, dim);
  return std::any_of(list.begin(), list.end(), [&](Factor factor) {
    const std::vector<int>& axes = axes_of(factor);
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  });
}

bool SplitPlan::adds_up_split(ValueId loop, int axis) const {
  return std::ranges::any_of(factors_.resolve(dims_.sums.at(loop)), [&](Factor factor) {
    const std::vector<int>& axes = axes_of(factor);
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  });
}

std::vector<int> SplitPlan::axes_of(ValueId id, int dim) const {
  std::vector<int> all;
  for (const Factor factor : factors(id, dim)) {
    const std::vector<int>& axes = axes_of(factor);
    all.insert(all.end(), axes.begin(), axes.end());
  }
  return all;
}

bool SplitPlan::is_split(ValueId id, int axis) const {
  for (int d = 0; d < graph_[id].type.rank(); ++d)
    if (is_split(id, d, axis)) return true;
  return false;
}

bool SplitPlan::is_split_dim(ValueId id, int dim) const { return ranks(id, dim) > 1; }

Placement SplitPlan::placement(ValueId id) const {
  Placement result(static_cast<std::size_t>(mesh_.axis_count()), Whole{});
  for (int d = 0; d < graph_[id].type.rank(); ++d) {
    Dim outer(1);
    for (const Factor factor : factors(id, d)) {
      const Dim& size = factors_.size(factor);
      Dim blocks = whole(outer);
      for (const int axis : axes_of(factor)) {
        const Dim ranks(mesh_[axis].ranks);
        const Dim unit = *whole(graph_[id].type.shape[d]).divided_by(blocks * ranks);
        result[axis] = SplitDim{d, blocks, unit};
        blocks = blocks * ranks;
      }
      outer = outer * size;
    }
  }
  return result;
}

void SplitPlan::check_repeats() const {
  for (const ValueId id : all_values(graph_)) {
    std::vector<int> seen(static_cast<std::size_t>(mesh_.axis_count()), -1);
    for (int d = 0; d < graph_[id].type.rank(); ++d)
      for (const int axis : axes_of(id, d)) {
        int& before = seen[axis];
        if (before >= 0)
          throw UserError(
              graph_[id].loc, "shard",
              fmt::format("dims {} and {} of {} are both split over {}", before, d, describe(id), mesh_[axis].name),
              "shard_repeat", "a process holds one part along an axis: split one of them over another");
        before = d;
      }
  }
  for (const auto& [loop, dims] : dims_.bodies) body(loop).check_repeats();
}

Dim SplitPlan::whole(const Dim& size) const {
  if (size.value() || substituted_.empty()) return size;
  Dim sum(0);
  for (const Dim::Term& term : size.terms()) {
    Dim product(term.coefficient);
    for (const auto& [name, power] : term.monomial) {
      const auto found = substituted_.find(name);
      for (int i = 0; i < power; ++i) product = product * (found == substituted_.end() ? Dim(name) : found->second);
    }
    sum = sum + product;
  }
  return sum == size ? size : sum;
}

std::int64_t SplitPlan::ranks(ValueId id, int dim) const {
  std::int64_t ranks = 1;
  for (const int axis : axes_of(id, dim)) ranks *= mesh_[axis].ranks;
  return ranks;
}

Dim SplitPlan::local(ValueId id, int dim) const {
  const Dim& size = graph_[id].type.shape[dim];
  const std::int64_t shared = ranks(id, dim);
  if (shared == 1) return whole(size);
  const auto part = whole(size).unnamed().divided_by(Dim(shared));
  LATHE_ASSERT(part.has_value());
  if (!part->value()) return *part;
  std::string axes;
  for (const int axis : axes_of(id, dim)) axes += "@" + mesh_[axis].name;
  return part->named((size.name().empty() ? "_" : size.name()) + axes);
}

Shape SplitPlan::local_shape(ValueId id) const {
  Shape shape;
  for (int d = 0; d < graph_[id].type.rank(); ++d) shape.push_back(local(id, d));
  return shape;
}

}  // namespace lathe::shard
