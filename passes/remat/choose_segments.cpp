#include "passes/remat/choose_segments.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "passes/fusion/inline_policy.h"
#include "passes/remat/kept_carries.h"
#include "passes/remat/work.h"

namespace lathe {

using namespace ir;

namespace {

constexpr double slack = 0.01;  // of the saved bytes, for fewer segments

double bytes_of(const TensorType& type, const DimBindings& dims) {
  return static_cast<double>(type.shape.numel().evaluate(dims)) * static_cast<double>(size_in_bytes(type.dtype));
}

/// Returns the rough number of operations of one run of a graph.
double work_of(const Graph& graph, const DimBindings& dims) {
  double work = 0;
  std::vector<const Node*> loops;
  for (const Node& node : graph.nodes) {
    if (node.op->as<Argument>() || node.op->as<View>()) continue;
    if (is_loop(node)) {
      if (std::ranges::any_of(loops, [&](const Node* other) { return is_same_loop(*other, node); })) continue;
      loops.push_back(&node);
      work += work_of(loop_body(node).graph(), dims) * static_cast<double>(loop_trips(node).evaluate(dims));
      continue;
    }
    const auto elements = static_cast<double>(node.type.shape.numel().evaluate(dims));
    const auto* contraction = node.op->as<Contraction>();
    const ContractionRoles roles = contraction ? contraction->roles(node) : ContractionRoles();
    work += contraction
                ? elements * (static_cast<double>(roles.size_of(roles.contracted(), graph, node).evaluate(dims)) +
                              memory_work)
                : elements * (memory_work + arithmetic_cost(node));
  }
  return work;
}

/// Returns the proper divisors of a number, ascending.
std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d <= number / d; ++d) {
    if (number % d != 0) continue;
    if (d < number) small.push_back(d);
    if (d != number / d && number / d < number) large.push_back(number / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

}  // namespace

std::optional<SegmentChoice> choose_segments(const Graph& graph, const LoopPair& pair, const DimBindings& dims) {
  const Graph& around = pair.body ? pair.body->graph() : graph;
  const Node& saver = around[pair.saver];
  const Graph& body = loop_body(saver).graph();
  double checkpoint = 0, iteration = 0;
  const std::vector<bool> stored = stored_carries(around, pair);
  for (std::size_t c = 0; c < stored.size(); ++c)
    if (stored[c]) checkpoint += bytes_of(body[body.arguments()[c]].type, dims);
  for (const int result : pair.again)
    iteration += bytes_of(body[body.outputs[static_cast<std::size_t>(result - carry_count(saver))].value].type, dims);
  const std::int64_t trips = loop_trips(saver).evaluate(dims);
  const auto kept = [&](std::int64_t every) {
    const std::int64_t segments = trips / every;
    return static_cast<double>(segments) * checkpoint + static_cast<double>(every) * iteration;
  };
  std::vector<std::int64_t> lengths = divisors(trips);
  std::erase_if(lengths, [&](std::int64_t every) { return !segment_count(loop_trips(saver), every); });
  if (lengths.empty()) return std::nullopt;
  const double saved = static_cast<double>(trips) * iteration;
  const double least = std::ranges::min(lengths | std::views::transform(kept));
  if (least >= saved) return std::nullopt;
  const auto fits = [&](std::int64_t every) { return kept(every) <= least + slack * saved && kept(every) < saved; };
  const std::int64_t every = *std::ranges::find_if(lengths.rbegin(), lengths.rend(), fits);
  return SegmentChoice{
      .loops = {.pair = pair, .every = every},
      .trips = trips,
      .saved = saved,
      .kept = kept(every),
      .work = work_of(body, dims) * static_cast<double>(trips) * static_cast<double>(pair.runs.evaluate(dims))};
}

}  // namespace lathe
