#include "passes/shard/predict/rate_text.h"

#include <fmt/core.h>

#include <array>

#include "passes/shard/predict/step_rates.h"

namespace lathe::shard {

namespace {

/// Formats a number below 1000 with three significant digits.
std::string three_digits(double number) {
  return fmt::format("{:.{}f}", number, number < 10 ? 2 : number < 100 ? 1 : 0);
}

}  // namespace

StepRates table_rates(const HardwareInfo& machine) {
  StepRates rates;
  rates.flops = std::visit([](const auto& info) { return info.product_flops(); }, machine);
  rates.basis = fmt::format("the peak of {}", std::visit([](const auto& info) { return info.name; }, machine));
  if (const auto* const gpu = std::get_if<GpuInfo>(&machine)) {
    rates.plain_flops = gpu->plain_product_flops();
    rates.memory_bandwidth = gpu->bytes_per_second;
    rates.launch_seconds = gpu->launch_seconds;
  }
  return rates;
}

std::string to_string(const StepRates& rates) {
  std::string computes = scaled_text(rates.flops, "FLOP/s");
  if (rates.memory_bandwidth > 0 && rates.plain_flops != rates.flops)
    computes += fmt::format(" by tensor cores and {} without", scaled_text(rates.plain_flops, "FLOP/s"));
  if (rates.memory_bandwidth > 0)
    computes += fmt::format(", moves {} of its memory, takes {} for a kernel",
                            scaled_text(rates.memory_bandwidth, "B/s"), seconds_text(rates.launch_seconds));
  return fmt::format("predicted, not measured: a process computes {}, sends {}, and takes {} for a message ({})\n",
                     computes, scaled_text(rates.bandwidth, "B/s"), seconds_text(rates.latency), rates.basis);
}

std::string scaled_text(double number, const std::string& unit) {
  constexpr std::array<const char*, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  for (; number >= 999.5 && prefix + 1 < prefixes.size(); ++prefix) number /= 1000;
  return fmt::format("{} {}{}", three_digits(number), prefixes[prefix], unit);
}

std::string seconds_text(double seconds) {
  constexpr std::array<const char*, 3> small{"ms", "us", "ns"};
  if (seconds == 0) return "0 s";
  if (seconds >= 0.9995) return three_digits(seconds) + " s";
  std::size_t unit = 0;
  for (seconds *= 1000; seconds < 0.9995 && unit + 1 < small.size(); ++unit) seconds *= 1000;
  return fmt::format("{} {}", three_digits(seconds), small[unit]);
}

}  // namespace lathe::shard
