#include "passes/compile/program_time.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "passes/memory/memory_plan.h"
#include "passes/program/kept_launches.h"
#include "passes/program/program_loops.h"
#include "passes/shard/shard.h"

namespace lathe {

using shard::StepRates;
using shard::StepTime;

namespace {

double moving_seconds(const Launch& launch, const StepRates& rates, const DimBindings& dims) {
  const double moving =
      rates.memory_bandwidth > 0 ? static_cast<double>(launch.bytes.evaluate(dims)) / rates.memory_bandwidth : 0;
  return moving + rates.launch_seconds;
}

/// One value of a collective, as a collective of the graph.
shard::Collective one_value(const Collective& collective, const Collective::Part& part, const Program& program) {
  const Dim gathered = collective.kind == Collective::Kind::all_gather ? Dim(collective.ranks) : Dim(1);
  const DType dtype = program.buffers[part.from].dtype;
  return {.kind = collective.kind,
          .axis = {collective.axis, collective.ranks},
          .value = {},
          .elements = part.elements * gathered,
          .element_bytes = static_cast<std::int64_t>(size_in_bytes(dtype)),
          .loc = part.loc,
          .reason = {}};
}

/// All values of a collective share its messages.
double seconds_of(const Collective& collective, const Program& program, const StepRates& rates,
                  const DimBindings& dims) {
  double seconds = 0, messages = 0;
  for (const Collective::Part& part : collective.parts) {
    const shard::Collective value = one_value(collective, part, program);
    messages = static_cast<double>(shard::messages(value)) * rates.latency;
    seconds += static_cast<double>(bytes_sent(value, dims)) / rates.bandwidth;
    if (part.fold) seconds += moving_seconds(*part.fold, rates, dims);
  }
  return seconds + messages;
}

}  // namespace

StepTime launch_time(const Program& program, const Launch& launch, const StepRates& rates, const DimBindings& dims) {
  StepTime time;
  if (is_skipped(program, launch, dims)) return time;
  const double flops = static_cast<double>(launch.flops.evaluate(dims));
  if (launch.info.multiplier != Multiplier::none)
    time.products = flops / (is_tensor_core(launch.info.multiplier) ? rates.flops : rates.plain_flops);
  const double moving = moving_seconds(launch, rates, dims) - rates.launch_seconds;
  time.memory = std::max(0.0, moving - time.products) + rates.launch_seconds;
  return time;
}

StepTime program_time(const Program& program, const StepRates& rates, const DimBindings& dims) {
  StepTime time;
  double now = 0, network_free = 0;
  std::vector<double> over;  // end times of the collectives that have started
  const auto reach = [&](int launch) {
    for (; over.size() < program.collectives.size() && program.collectives[over.size()].start <= launch;) {
      const double seconds = seconds_of(program.collectives[over.size()], program, rates, dims);
      network_free = std::max(network_free, now) + seconds;
      time.collectives += seconds;
      over.push_back(network_free);
    }
    double until = now;
    for (std::size_t e = 0; e < over.size(); ++e)
      if (program.collectives[e].done <= launch) until = std::max(until, over[e]);
    time.waiting += until - now;
    now = until;
  };
  for (auto l = static_cast<std::size_t>(kept_launches(program)); l < program.launches.size(); ++l) {
    reach(static_cast<int>(l));
    const StepTime launch = launch_time(program, program.launches[l], rates, dims);
    const auto runs = static_cast<double>(runs_of(program, static_cast<int>(l)).evaluate(dims));
    time.products += runs * launch.products;
    time.memory += runs * launch.memory;
    now += runs * (launch.products + launch.memory);
  }
  reach(static_cast<int>(program.launches.size()));
  return time;
}

shard::CompiledStep compiled_step(Program program, const StepRates& rates) {
  const auto held = std::make_shared<const Program>(std::move(program));
  return {.time = [=](const DimBindings& dims) { return program_time(*held, rates, dims); },
          .held = [=](const DimBindings& dims) { return plan_memory(*held, dims).total_bytes(); }};
}

}  // namespace lathe
