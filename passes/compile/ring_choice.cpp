#include "passes/compile/ring_choice.h"

#include <fmt/core.h>

#include "ir/tensor/binding.h"
#include "passes/compile/compile.h"
#include "passes/compile/gather_choice.h"
#include "passes/compile/program_time.h"
#include "passes/compile/run_order.h"
#include "passes/shard/predict/rate_text.h"
#include "passes/shard/predict/step_time.h"
#include "passes/shard/ring/ring_attention.h"

namespace lathe {

using shard::RingWay;

namespace {

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
    return {RingWay::never, "keys and values are gathered: no sizes are given that a ring would pay at\n"};
  if (lowering.memory) {
    const std::int64_t most = lowering.memory->bytes, so = bytes_without_budget(ring.graph, machine, lowering),
                       other = bytes_without_budget(gathered, machine, lowering);
    const auto told = [&](std::string_view what, std::int64_t takes, std::string_view instead, std::int64_t bytes) {
      return fmt::format("keys and values {}: a process takes {} bytes so, {} where they {}, of a budget of {}\n",
                         what, takes, bytes, instead, most);
    };
    if (other > most && so < other) return {RingWay::always, told("go around in a ring", so, "are gathered", other)};
    if (so > most) return {RingWay::never, told("are gathered", other, "go around in a ring", so)};
  }
  const double so = predicted_seconds(ring.graph, machine, lowering, rates, dims),
               other = predicted_seconds(gathered, machine, lowering, rates, dims);
  const auto told = [](std::string_view what, double takes, std::string_view instead, double seconds) {
    return fmt::format("keys and values {}: a step is predicted to take {} so, {} where they {}\n", what,
                       shard::seconds_text(takes), shard::seconds_text(seconds), instead);
  };
  if (so < other) return {RingWay::always, told("go around in a ring", so, "are gathered", other)};
  return {RingWay::never, told("are gathered", other, "go around in a ring", so)};
}

}  // namespace lathe
