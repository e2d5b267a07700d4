#include <fmt/core.h>

#include <random>

#include "ir/tensor/loop_views.h"
#include "ir/tensor/verifier.h"
#include "passes/compile/compilation.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/pipeline/pipeline.h"
#include "passes/remat/checkpoint_loops.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

/// Chooses a length of segments for each pair of loops that can be rewritten.
std::vector<LoopSegments> random_segments(const ir::Graph& graph, std::mt19937& random) {
  std::vector<LoopSegments> chosen;
  for (LoopPair& pair : find_loop_pairs(graph)) {
    if (!pair.left_alone.empty()) continue;
    const ir::Graph& around = pair.body ? pair.body->graph() : graph;
    std::vector<std::int64_t> lengths;
    for (std::int64_t every = 1; every <= 64; ++every)
      if (segment_count(loop_trips(around[pair.saver]), every)) lengths.push_back(every);
    chosen.push_back({std::move(pair), lengths[random() % lengths.size()]});
  }
  return chosen;
}

}  // namespace

Complaint in_segments(const Case& from) {
  const ir::Graph whole = prepare_for_fusion(run_pipeline(from.graph, default_pipeline({.on = false})).graph);
  std::mt19937 random(from.seed);
  const std::vector<LoopSegments> chosen = random_segments(whole, random);
  if (chosen.empty()) return std::nullopt;
  const ir::Graph after = checkpoint_loops(whole, chosen);
  verify(after);
  verify_prepared(after);
  for (const DimBindings& dims : from.sizes) {
    const Tensors arguments = arguments_of(from, dims);
    const auto run = [&](const ir::Graph& graph) { return outcome([&] { return interpret(graph, arguments); }); };
    const Outcome expected = run(whole), found = run(after);
    if (expected.label != found.label)
      return fmt::format("{}: '{}' becomes '{}'", test::to_string(dims), expected.label, found.label);
    for (const auto& [name, value] : expected.results)
      if (!test::same_bits(value, found.results.at(name)))
        return fmt::format("{}: {} has other bits", test::to_string(dims), name);
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
