#include "passes/compile/program_time.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "passes/memory/memory_plan.h"
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

/// One value of an exchange, as an exchange of the graph.
shard::Exchange one_value(const Exchange& exchange, const Exchange::Part& part, const Program& program) {
  const Dim gathered = exchange.kind == Exchange::Kind::all_gather ? Dim(exchange.ranks) : Dim(1);
  const DType dtype = program.buffers[part.from].dtype;
  return {.kind = exchange.kind,
          .axis = {exchange.axis, exchange.ranks},
          .value = {},
          .elements = part.elements * gathered,
          .element_bytes = static_cast<std::int64_t>(size_in_bytes(dtype)),
          .loc = part.loc,
          .reason = {}};
}

/// All values of an exchange share its messages.
double seconds_of(const Exchange& exchange, const Program& program, const StepRates& rates, const DimBindings& dims) {
  double seconds = 0, messages = 0;
  for (const Exchange::Part& part : exchange.parts) {
    const shard::Exchange value = one_value(exchange, part, program);
    messages = static_cast<double>(shard::messages(value)) * rates.latency;
    seconds += static_cast<double>(bytes_sent(value, dims)) / rates.bandwidth;
    if (part.fold) seconds += moving_seconds(*part.fold, rates, dims);
  }
  return seconds + messages;
}

}  // namespace

StepTime launch_time(const Program& program, const Launch& launch, const StepRates& rates, const DimBindings& dims) {
  StepTime time;
  if (writes_nothing(program, launch, dims)) return time;
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
  std::vector<double> over;  // end times of the exchanges that have started
  const auto reach = [&](int launch) {
    for (; over.size() < program.exchanges.size() && program.exchanges[over.size()].start <= launch;) {
      const double seconds = seconds_of(program.exchanges[over.size()], program, rates, dims);
      network_free = std::max(network_free, now) + seconds;
      time.exchanges += seconds;
      over.push_back(network_free);
    }
    double until = now;
    for (std::size_t e = 0; e < over.size(); ++e)
      if (program.exchanges[e].done <= launch) until = std::max(until, over[e]);
    time.waiting += until - now;
    now = until;
  };
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    reach(static_cast<int>(l));
    const StepTime launch = launch_time(program, program.launches[l], rates, dims);
    time.products += launch.products;
    time.memory += launch.memory;
    now += launch.products + launch.memory;
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
