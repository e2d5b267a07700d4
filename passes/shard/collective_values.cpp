#include "passes/shard/collective_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "ir/ops/collectives.h"
#include "ir/ops/primitives/blocks.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/interpret/evaluate.h"

namespace lathe::shard {

using namespace ir;

namespace {

using ops::Blocks;
using ops::blocks_of;
using ops::copy_elements;

/// Returns index `index` of the ranks of dim `dim`, viewed as (outer, ranks, rest).
HostTensor take_blocks(const HostTensor& whole, int dim, std::int64_t outer, std::int64_t ranks, std::int64_t index) {
  std::vector<std::int64_t> sizes = whole.shape();
  const Blocks blocks = blocks_of(sizes, dim);
  sizes[dim] = blocks.size / ranks;
  HostTensor part(whole.dtype(), sizes);
  const std::int64_t run = blocks.size / ranks / std::max<std::int64_t>(outer, 1) * blocks.inner;
  for (std::int64_t o = 0; run > 0 && o < blocks.outer * outer; ++o)
    copy_elements(whole, (o * ranks + index) * run, part, o * run, run);
  return part;
}

/// Concatenates the shards as index 0, 1, .. of the ranks of dim `dim` of the result, viewed as (outer, ranks, rest).
HostTensor join_blocks(std::span<const HostTensor* const> parts, int dim, std::int64_t outer) {
  const auto ranks = static_cast<std::int64_t>(parts.size());
  std::vector<std::int64_t> sizes = parts[0]->shape();
  const Blocks blocks = blocks_of(sizes, dim);
  sizes[dim] *= ranks;
  HostTensor whole(parts[0]->dtype(), sizes);
  const std::int64_t run = blocks.size / std::max<std::int64_t>(outer, 1) * blocks.inner;
  for (std::int64_t r = 0; r < ranks; ++r)
    for (std::int64_t o = 0; run > 0 && o < blocks.outer * outer; ++o)
      copy_elements(*parts[r], o * run, whole, (o * ranks + r) * run, run);
  return whole;
}

/// One axis's split of a dim.
struct OneSplit {
  int axis;
  SplitDim split;
  std::int64_t inner_ranks;  ///< product over the splits of the same dim further in
};

bool is_outside(const SplitDim& a, const SplitDim& b) {
  return a.outer != b.outer && b.outer.divided_by(a.outer).has_value();
}

/// Returns the splits of a placement, the outer ones of a dim first.
std::vector<OneSplit> outer_first(const Placement& placement, const Mesh& mesh) {
  std::vector<OneSplit> splits;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (const auto* split = std::get_if<SplitDim>(&placement[a])) splits.push_back({a, *split, 1});
  std::stable_sort(splits.begin(), splits.end(), [](const OneSplit& a, const OneSplit& b) {
    return a.split.dim != b.split.dim ? a.split.dim < b.split.dim : is_outside(a.split, b.split);
  });
  for (OneSplit& split : splits)
    for (const OneSplit& other : splits)
      if (other.split.dim == split.split.dim && is_outside(split.split, other.split))
        split.inner_ranks *= mesh[other.axis].ranks;
  return splits;
}

/// Returns the number of blocks of a dim, each of which holds the runs of `runs` processes.
std::int64_t block_count(const OneSplit& one, std::int64_t size, std::int64_t runs, const DimBindings& bindings,
                         const std::string& name) {
  if (const auto outer = one.split.outer.value()) return *outer;
  if (const auto unit = one.split.unit.value())
    return size / std::max<std::int64_t>(1, runs * (*unit / one.inner_ranks));
  for (const std::string& unknown : one.split.outer.unknowns())
    if (!bindings.contains(unknown))
      throw UserError(
          fmt::format("dim {} of {} is split within {} blocks, and its size does not determine their number",
                      one.split.dim, name, one.split.outer.to_string()),
          "mesh_divide", fmt::format("pass {} with the dims of the run", unknown));
  return one.split.outer.evaluate(bindings);
}

}  // namespace

HostTensor part_of(HostTensor whole, const Placement& placement, const Mesh& mesh, std::int64_t process,
                   const std::string& name, const DimBindings& bindings) {
  std::vector<OneSplit> splits = outer_first(placement, mesh);
  std::reverse(splits.begin(), splits.end());
  for (const OneSplit& one : splits) {
    const auto dim = static_cast<std::size_t>(one.split.dim);
    if (dim >= whole.shape().size()) break;  // wrong rank: bind_dims reports it
    const std::int64_t ranks = mesh[one.axis].ranks, size = whole.shape()[dim];
    const std::int64_t outer = block_count(one, size, ranks, bindings, name);
    if (size % (ranks * std::max<std::int64_t>(outer, 1)) != 0)
      throw UserError(fmt::format("dim {} of {} has {} elements, which do not divide over {}={}", dim, name, size,
                                  mesh[one.axis].name, ranks),
                      "mesh_divide", fmt::format("give a multiple of {}", ranks * outer));
    whole = take_blocks(whole, one.split.dim, outer, ranks, mesh.index(process, one.axis));
  }
  return whole;
}

bool holds_first_copy(const Placement& placement, const Mesh& mesh, std::int64_t process) {
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (std::holds_alternative<Whole>(placement[a]) && mesh.index(process, a) != 0) return false;
  return true;
}

void require_same_copies(const Placement& placement, const Mesh& mesh, const std::string& name,
                         const std::function<bool(std::int64_t a, std::int64_t b)>& same) {
  for (int a = 0; a < mesh.axis_count(); ++a) {
    if (!std::holds_alternative<Whole>(placement[a])) continue;
    for (std::int64_t p = 0; p < mesh.size(); ++p)
      if (const std::int64_t first = mesh.group(p, a).front(); p != first && !same(p, first))
        throw UserError(fmt::format("processes along {} hold different values of {}", mesh[a].name, name),
                        "mesh_disagree", "the graph of every process must be the same");
  }
}

HostTensor join_parts(std::span<const HostTensor> parts, const Placement& placement, const Mesh& mesh,
                      const std::string& name, const DimBindings& bindings) {
  std::vector<std::int64_t> first;  // at position 0 along the axes that are joined
  for (std::int64_t p = 0; p < mesh.size(); ++p)
    if (holds_first_copy(placement, mesh, p)) first.push_back(p);
  std::map<std::int64_t, HostTensor> joined;
  const auto value_of = [&](std::int64_t process) -> const HostTensor& {
    const auto found = joined.find(process);
    return found == joined.end() ? parts[process] : found->second;
  };
  for (const OneSplit& one : outer_first(placement, mesh)) {
    std::erase_if(first, [&](std::int64_t process) { return mesh.index(process, one.axis) != 0; });
    std::map<std::int64_t, HostTensor> next;
    for (const std::int64_t p : first) {
      std::vector<const HostTensor*> group;
      for (const std::int64_t member : mesh.group(p, one.axis)) group.push_back(&value_of(member));
      const std::int64_t size = group[0]->shape()[one.split.dim];
      next.emplace(p, join_blocks(group, one.split.dim, block_count(one, size, 1, bindings, name)));
    }
    joined = std::move(next);
  }
  return value_of(0);
}

HostTensor join_gathered(HostTensor own, const Placement& placement, const Mesh& mesh, const std::string& name,
                         const GatherParts& gather, const DimBindings& bindings) {
  for (const OneSplit& one : outer_first(placement, mesh)) {
    const std::int64_t size = own.shape()[one.split.dim];
    const std::vector<HostTensor> parts = gather(own, one.axis);
    std::vector<const HostTensor*> group;
    for (const HostTensor& part : parts) group.push_back(&part);
    own = join_blocks(group, one.split.dim, block_count(one, size, 1, bindings, name));
  }
  return own;
}

namespace {

double combine_real(ScalarOp combine, double a, double b) {
  if (combine == ScalarOp::add) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return combine == ScalarOp::max ? std::max(a, b) : std::min(a, b);
}

std::int64_t combine_integer(ScalarOp combine, std::int64_t a, std::int64_t b) {
  const std::int64_t both[] = {a, b};
  return integer_scalar(combine, both);
}

HostTensor combine_all(std::span<const HostTensor* const> group, ScalarOp combine) {
  HostTensor result = *group[0];
  for (const HostTensor* next : group.subspan(1))
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      if (is_complex(result.dtype()))
        set_complex(result, i, get_complex(result, i) + get_complex(*next, i));
      else if (is_float(result.dtype()))
        result.set(i, combine_real(combine, result.get(i), next->get(i)));
      else
        result.set_int(i, combine_integer(combine, result.get_int(i), next->get_int(i)));
    }
  return result;
}

}  // namespace

HostTensor collective_value(const Node& node, std::span<const HostTensor* const> group, std::int64_t index,
                            const DimBindings& bindings) {
  const std::int64_t ranks = axis_of(node).ranks;
  const auto dim = [&](std::string_view attr) {
    return rules::normalize_axis(node.attrs.get<std::int64_t>(attr), node.type.rank());
  };
  const auto outer = [&] { return node.attrs.get<Dim>("outer").evaluate(bindings); };
  if (node.op == &ops::mesh_index) return HostTensor::from_ints({}, {index});
  switch (collective_kind(*node.op)) {
    case CollectiveKind::all_reduce: return combine_all(group, fold_of(node));
    case CollectiveKind::all_gather: return join_blocks(group, dim("dim"), outer());
    case CollectiveKind::reduce_scatter:
      return take_blocks(combine_all(group, fold_of(node)), dim("dim"), outer(), ranks, index);
    case CollectiveKind::send_recv: return *group[(index + ranks - places_on(node)) % ranks];
    case CollectiveKind::all_to_all: break;
  }
  std::vector<HostTensor> parts;
  for (const HostTensor* each : group) parts.push_back(take_blocks(*each, dim("split_dim"), 1, ranks, index));
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& part : parts) pointers.push_back(&part);
  return join_blocks(pointers, dim("concat_dim"), 1);
}

}  // namespace lathe::shard
