#include "passes/compile/ring_choice.h"

#include <fmt/core.h>

#include "ir/tensor/binding.h"
#include "passes/compile/compilation.h"
#include "passes/compile/gather_choice.h"
#include "passes/compile/program_time.h"
#include "passes/compile/run_order.h"
#include "passes/shard/predict/rate_text.h"
#include "passes/shard/predict/step_time.h"
#include "passes/shard/ring/ring_attention.h"

namespace lathe {

using shard::RingWay;

namespace {

constexpr std::string_view around = "are passed around a ring", together = "are gathered";

double predicted_seconds(const ir::Graph& graph, const Machine& machine, LowerOptions lowering,
                         const shard::StepRates& rates, const DimBindings& dims) {
  lowering.memory.reset();
  const Lowered lowered = compile_graph(graph, machine, {.lower = lowering});
  if (std::holds_alternative<GpuInfo>(machine.info)) return program_time(lowered.program, rates, dims).step();
  return shard::step_time(in_run_order(lowered), rates, dims).step();
}

}  // namespace

RingChoice choose_ring(const ir::Graph& gathered, const Machine& machine, const LowerOptions& lowering,
                       const shard::StepRates& rates, const DimBindings& dims) {
  const shard::RingGraph ring = shard::ring_attention(gathered);
  if (ring.rings == 0) return {};
  if (!ir::unbound_dims(gathered, dims).empty())
    return {RingWay::never, "keys and values are gathered: without sizes, the benefit of a ring is unknown\n"};
  if (lowering.memory) {
    const std::int64_t most = lowering.memory->bytes, by_ring = bytes_without_budget(ring.graph, machine, lowering),
                       by_gather = bytes_without_budget(gathered, machine, lowering);
    const auto reason = [&](std::string_view what, std::int64_t needed, std::string_view other, std::int64_t bytes) {
      return fmt::format(
          "keys and values {}: this needs {} bytes per process, compared with {} if they {} (budget: {} "
          "bytes)\n",
          what, needed, bytes, other, most);
    };
    if (by_gather > most && by_ring < by_gather)
      return {RingWay::always, reason(around, by_ring, together, by_gather)};
    if (by_ring > most) return {RingWay::never, reason(together, by_gather, around, by_ring)};
  }
  const double by_ring = predicted_seconds(ring.graph, machine, lowering, rates, dims),
               by_gather = predicted_seconds(gathered, machine, lowering, rates, dims);
  const auto reason = [](std::string_view what, double predicted, std::string_view other, double seconds) {
    return fmt::format("keys and values {}: a step is predicted to take {}, compared with {} if they {}\n", what,
                       shard::seconds_text(predicted), shard::seconds_text(seconds), other);
  };
  if (by_ring < by_gather) return {RingWay::always, reason(around, by_ring, together, by_gather)};
  return {RingWay::never, reason(together, by_gather, around, by_ring)};
}

}  // namespace lathe
