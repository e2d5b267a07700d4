#include "passes/fusion/attention/attention_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/constants.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::int64_t most_for_a_depth = 4;  // columns per element of the depth
constexpr int tile_rows = 32;                 // rows and columns of a tile_mma accumulator block
// Minimum rows of an f32 attention for which split bf16 by tile_mma pays off, and minimum columns that each row must
// attend to.
constexpr int split_rows = 128, split_columns = 160;

/// Returns the number of elements that a matmul sums over.
Dim depth_of(const Graph& graph, const Node& product) {
  const ContractionRoles roles = product.op->as<Contraction>()->roles(product);
  return roles.size_of(roles.contracted(), graph, product);
}

/// Whether `is` holds for one of the nodes or for one that can be reached from them; `next` returns a node's
/// successors.
bool leads_to(std::vector<ValueId> work, const std::function<bool(ValueId)>& is,
              const std::function<std::span<const ValueId>(ValueId)>& next) {
  std::set<ValueId> seen(work.begin(), work.end());
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (is(id)) return true;
    for (const ValueId behind : next(id))
      if (seen.insert(behind).second) work.push_back(behind);
  }
  return false;
}

/// Whether a matmul of a gradient reads the operands of this matmul.
bool is_differentiated(const AttentionSubject& subject, const Node& product) {
  std::vector<ValueId> read;
  for (const ValueId operand : product.operands) read.push_back(through_aliases(subject.graph, operand));
  const auto is_gradient = [&](ValueId id) {
    return subject.node(id).op->as<Contraction>() && subject.node(id).loc.gradient();
  };
  return leads_to(read, is_gradient, [&](ValueId id) {
    const bool shown = subject.is_transparent(id) || std::find(read.begin(), read.end(), id) != read.end();
    return shown ? subject.users[id] : std::span<const ValueId>{};
  });
}

/// A sum of positions, each given by its iota or a view of it, and a number.
struct Positions {
  std::map<ValueId, double> times;
  double offset = 0;
};

/// Returns the positions whose sum `value` is, if any: an iota, or a view of one along itself, as rows and columns
/// are.
std::optional<Positions> positions(const Graph& graph, ValueId value) {
  const auto is_iota = [&](ValueId id) {
    const Node& node = graph[id];
    return node.op == &ops::iota ||
           (is_alias(node) && graph[node.operands[0]].op == &ops::iota && graph[node.operands[0]].type.rank() == 1);
  };
  const auto is_sum = [&](ValueId id) { return graph[id].op == &ops::add || graph[id].op == &ops::sub; };
  const auto shows = [&](ValueId id) { return is_alias(graph[id]) || graph[id].op == &ops::cast; };
  std::map<ValueId, std::optional<Positions>> known;
  for (const ValueId id : ancestors(
           graph, value, [&](ValueId v) { return !is_iota(v) && !is_splat(graph[v]) && (shows(v) || is_sum(v)); })) {
    const Node& node = graph[id];
    std::optional<Positions>& found = known[id];
    if (is_iota(id)) {
      found = Positions{{{id, 1}}, 0};
    } else if (is_splat(node)) {
      found = Positions{{}, constant_values(node)[0].real()};
    } else if (shows(id)) {
      found = known.at(node.operands[0]);
    } else if (is_sum(id)) {
      const auto &left = known.at(node.operands[0]), &right = known.at(node.operands[1]);
      if (!left || !right) continue;
      const int sign = node.op == &ops::add ? 1 : -1;
      found = left;
      for (const auto& [iota, times] : right->times) found->times[iota] += sign * times;
      found->offset += sign * right->offset;
    }
  }
  return known.at(value);
}

/// Returns the difference of the two positions at which their comparison changes, which is halfway between two
/// integers.
std::optional<double> diagonal(const Graph& graph, const Node& comparison) {
  const auto left = positions(graph, comparison.operands[0]), right = positions(graph, comparison.operands[1]);
  if (!left || !right) return std::nullopt;
  std::map<ValueId, double> times = left->times;
  for (const auto& [iota, n] : right->times) times[iota] -= n;
  std::erase_if(times, [](const auto& term) { return term.second == 0; });
  if (times.size() != 2 || times.begin()->second * times.rbegin()->second != -1) return std::nullopt;
  const double most = right->offset - left->offset + (comparison.op == &ops::lt ? -0.5 : 0.5);
  return times.begin()->second * most;
}

/// Returns the share of the columns that rows use. With a mask that compares positions, this is estimated as half of
/// the columns, or the number of columns between two diagonals. `beyond`: additional columns computed per row.
double share_of_columns(const AttentionSubject& subject, const AttentionGroup& group, double columns, double beyond) {
  const auto behind = [&](ValueId id) {
    return subject.is_transparent(id) ? std::span<const ValueId>(subject.node(id).operands)
                                      : std::span<const ValueId>{};
  };
  const auto is_positions = [&](ValueId id) { return subject.node(id).op == &ops::iota; };
  std::vector<ValueId> read;
  for (const ValueId id : group.members)
    read.insert(read.end(), subject.node(id).operands.begin(), subject.node(id).operands.end());
  bool compares = false;
  std::vector<double> diagonals;
  leads_to(
      read,
      [&](ValueId id) {
        const Node& node = subject.node(id);
        if (node.op != &ops::lt && node.op != &ops::le) return false;
        const auto found = diagonal(subject.graph, node);
        if (found) diagonals.push_back(*found);
        compares = compares || found ||
                   (leads_to({node.operands[0]}, is_positions, behind) &&
                    leads_to({node.operands[1]}, is_positions, behind));
        return false;
      },
      behind);
  if (!compares) return 1;
  const double causal = std::min(1.0, 0.5 + beyond / columns);
  if (diagonals.empty()) return causal;
  const auto [least, most] = std::minmax_element(diagonals.begin(), diagonals.end());
  return *least < *most ? std::min(causal, (*most - *least + 2 * beyond) / columns) : causal;
}

const AttentionRates& rates_of(const AttentionCosts& costs, DType dtype, bool tiled, bool differentiated) {
  if (tiled) return differentiated ? costs.training_by_tiles : costs.forward_by_tiles;
  if (differentiated) return costs.training;
  return dtype == bf16 ? costs.forward_bf16 : costs.forward;
}

}  // namespace

std::string why_not_by_tiles(DType dtype, const AttentionSizes& sizes) {
  const auto less = [](std::string_view what, const std::optional<std::int64_t>& size, std::int64_t least) {
    return size.value_or(least) >= least ? "" : fmt::format("{} {}, less than {}", what, *size, least);
  };
  if (dtype != bf16 && dtype != f32) return "its operands are neither bf16 nor f32";
  const bool pairs = dtype == bf16;
  const std::int64_t more_than_half = tile_rows / 2 + 1;
  for (std::string why : {less("a depth is", sizes.least_depth, pairs ? tile_rows / 2 : tile_rows),
                          less("its rows are", sizes.rows, pairs ? more_than_half : split_rows),
                          pairs ? less("its columns are", sizes.columns, more_than_half)
                                : less("the columns that a row looks at are", sizes.columns_of_row, split_columns)})
    if (!why.empty()) return why;
  return "";
}

std::optional<AttentionCost> attention_cost(const AttentionSubject& subject, const AttentionGroup& group,
                                            const AttentionCostModel& model) {
  const Graph& graph = subject.graph;
  const CpuInfo& cpu = model.cpu;
  const auto rows = group.domain[group.row].value(), columns = group.domain[group.domain.rank() - 1].value(),
             scores = group.domain.numel().value();
  if (!rows || !columns || !scores || *scores == 0 || *rows < least_block_rows) return std::nullopt;
  Dim made(0), summed(0);
  bool differentiated = false;
  DType dtype = f32;  // of the scores
  for (const ValueId id : group.members) {
    if (!graph[id].op->as<Contraction>()) continue;
    made = made + depth_of(graph, graph[id]);
    differentiated = differentiated || is_differentiated(subject, graph[id]);
    dtype = graph[id].type.dtype;
  }
  for (const ValueId id : group.consumers) {
    if (graph[id].loc.gradient()) return std::nullopt;
    const auto size = graph[id].type.shape.numel().value();
    if (!size) return std::nullopt;
    summed = summed + Dim(*size / (*scores / *columns));
  }
  const auto q = made.value(), v = summed.value();
  if (!q || !v || 2 * *columns > most_for_a_depth * (*q + *v)) return std::nullopt;
  const auto dq = static_cast<double>(*q), dv = static_cast<double>(*v), width = static_cast<double>(*columns),
             height = static_cast<double>(*rows);
  const auto of_row = static_cast<std::int64_t>(width * share_of_columns(subject, group, width, 0));
  const bool tiled = cpu.tiles && why_not_by_tiles(dtype, {rows, columns, of_row, std::min(*q, *v)}).empty();
  if (tiled && dtype == f32) return std::nullopt;
  const AttentionRates& rates = rates_of(model.costs, dtype, tiled, differentiated);
  const double share = share_of_columns(subject, group, width, rates.diagonal);
  const double lanes = cpu.vectors.lanes(f32), filled = height / (std::ceil(height / lanes) * lanes);
  const double bytes = static_cast<double>(size_in_bytes(dtype)) * static_cast<double>(*scores);
  // Scores, weights and the values derived from them are in the last-level cache together.
  const double points = bytes > static_cast<double>(cpu.last_level.bytes) / 4 ? rates.far_points : rates.plain_points;
  return AttentionCost{.fused = model.costs.fused_factor * share / filled *
                                    (rates.fused_scores * dq + rates.fused_sums * dv + rates.fused_points) +
                                rates.row * (dq + dv) / 2 / width,
                       .plain = rates.plain_products * (dq + dv) + points};
}

}  // namespace lathe
