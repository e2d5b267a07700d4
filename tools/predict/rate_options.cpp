#include "tools/predict/rate_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <span>

#include "ir/hardware/hardware_info.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/support/visible.h"

namespace lathe::tools {

namespace {

struct RateUnit {
  std::string_view name;
  double size;
};
constexpr RateUnit times[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
constexpr RateUnit bytes[] = {{"B/s", 1},        {"kB/s", 1e3},       {"MB/s", 1e6},       {"GB/s", 1e9},
                              {"TB/s", 1e12},    {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8},
                              {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20},   {"GiB/s", 0x1p30}};
constexpr RateUnit flops[] = {
    {"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};

/// Parses a number and a unit, such as "12.5 GB/s". The value must be at least `least`.
double quantity(std::string_view option, const std::string& text, std::span<const RateUnit> units, double least) {
  std::string names;
  for (const RateUnit& unit : units) names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
  const auto refuse = [&](std::string_view why) -> UserError {
    return {fmt::format("{}: '{}' {}", option, visible(text), why), "rate_text",
            fmt::format("give a number and one of {}", names)};
  };
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) throw refuse("does not start with a number");
  std::string_view name = std::string_view(text).substr(static_cast<std::size_t>(rest - text.data()));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const RateUnit& unit : units) {
    if (unit.name != name) continue;
    const double value = number * unit.size;
    if (!std::isfinite(value) || value < least) throw refuse(least > 0 ? "is not above 0" : "is below 0");
    return value;
  }
  throw refuse(name.empty() ? "has no unit" : "has an unknown unit");
}

HardwareInfo machine_named(const std::string& machine) {
  std::vector<std::string_view> names;
  for (const CpuInfo& cpu : cpu_infos()) {
    if (cpu.name == machine) return cpu;
    names.push_back(cpu.name);
  }
  for (const GpuInfo& gpu : gpu_infos()) {
    if (gpu.name == machine) return gpu;
    names.push_back(gpu.name);
  }
  throw UserError(fmt::format("unknown machine '{}'", visible(machine)), "machine_name",
                  did_you_mean_or_list(machine, names, "the known machines are"));
}

std::string_view name_of(const HardwareInfo& machine) {
  return std::visit([](const auto& info) { return info.name; }, machine);
}

shard::StepRates with_options(shard::StepRates rates, const RateOptions& options, std::string_view machine) {
  constexpr double above_zero = std::numeric_limits<double>::min();
  if (!options.rate.empty()) rates.flops = rates.plain_flops = quantity("--rate", options.rate, flops, above_zero);
  if (!options.bandwidth.empty()) rates.bandwidth = quantity("--bandwidth", options.bandwidth, bytes, above_zero);
  if (!options.latency.empty()) rates.latency = quantity("--latency", options.latency, times, 0);
  const bool all_given = !options.rate.empty() && !options.bandwidth.empty() && !options.latency.empty();
  if (!all_given)
    rates.basis = options.rate.empty() ? fmt::format("rates that are not given: the peak of {}", machine)
                                       : "rates that are not given: a default network";
  return rates;
}

}  // namespace

CLI::Option* add_rate_options(CLI::App& command, RateOptions& options) {
  CLI::Option* const machine =
      command.add_option("--machine", options.machine, "Machine of a process; its peak is the default of --rate")
          ->capture_default_str();
  command.add_option("--rate", options.rate,
                     "Matmul rate of a process, such as 800GFLOP/s (default: the peak of --machine)");
  command.add_option(
      "--bandwidth", options.bandwidth,
      "Bandwidth with which a process sends, such as 12.5GB/s or 100Gbit/s (default: that of a 100 Gbit/s network)");
  command.add_option("--latency", options.latency,
                     "Time per message in addition to its bytes, such as 2us (default: 2us)");
  return machine;
}

shard::StepRates rates_of(const RateOptions& options) {
  shard::StepRates rates;
  // Only look up the machine if a rate is needed: the tables may lack it.
  if (options.rate.empty()) rates.flops = shard::table_rates(machine_named(options.machine)).flops;
  return with_options(rates, options, options.machine);
}

shard::StepRates rates_of(const RateOptions& options, const HardwareInfo& machine) {
  shard::StepRates rates = shard::table_rates(machine);
  rates.basis = shard::StepRates{}.basis;
  return with_options(rates, options, name_of(machine));
}

}  // namespace lathe::tools
