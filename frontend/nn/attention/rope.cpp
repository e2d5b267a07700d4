#include "frontend/nn/attention/rope.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/nn/require_option.h"
#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

using Scaling = RopeOptions::Scaling;
constexpr double pi = std::numbers::pi;

/// base^(-2i/d), i = 0 .. d/2-1.
std::vector<double> plain_frequencies(std::int64_t d, double base) {
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < d / 2; ++i)
    frequencies.push_back(1 / std::pow(base, 2 * static_cast<double>(i) / static_cast<double>(d)));
  return frequencies;
}

double yarn_scale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

/// Interpolates from the plain frequencies to those of stretched positions, between frequency indices `low` and
/// `high`.
std::vector<double> yarn_frequencies(std::int64_t d, const RopeOptions& o) {
  const auto dim_of = [&](double rotations) {
    return static_cast<double>(d) * std::log(static_cast<double>(o.original_length) / (rotations * 2 * pi)) /
           (2 * std::log(o.theta));
  };
  double low = dim_of(o.beta_fast), high = dim_of(o.beta_slow);
  if (o.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(d - 1));
  if (low == high) high += 0.001;
  std::vector<double> frequencies = plain_frequencies(d, o.theta);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / o.factor * stretched + frequencies[i] * (1 - stretched);
  }
  return frequencies;
}

std::vector<double> llama3_frequencies(std::int64_t d, const RopeOptions& o) {
  const auto length = static_cast<double>(o.original_length);
  std::vector<double> frequencies = plain_frequencies(d, o.theta);
  for (double& frequency : frequencies) {
    const double wavelength = 2 * pi / frequency;
    if (wavelength < length / o.high_frequency) continue;
    const double smooth = (length / wavelength - o.low_frequency) / (o.high_frequency - o.low_frequency);
    frequency = wavelength > length / o.low_frequency ? frequency / o.factor
                                                      : (1 - smooth) * frequency / o.factor + smooth * frequency;
  }
  return frequencies;
}

std::vector<double> divided(std::vector<double> frequencies, const std::vector<double>& factors) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
  return frequencies;
}

Tensor as_tensor(const Tensor& like, const std::vector<double>& values) {
  return like.graph().literal({Dim("half", static_cast<std::int64_t>(values.size()))}, values, f64);
}

/// Returns the lengths f64 [.., 1] that rows of frequencies depend on: [1], [B, 1, 1] or [B, T, 1].
Tensor lengths_of(const Tensor& positions, const std::optional<Tensor>& lengths) {
  const Tensor each = (lengths ? *lengths : positions.max(-1) + 1).to(f64).unsqueeze(-1);
  return each.rank() == 2 ? each.unsqueeze(1) : each;
}

/// The base theta * (factor * L / max - (factor - 1))^(d / (d - 2)) for length L, at least max; then base^(-2i/d).
Tensor dynamic_frequencies(const Tensor& lengths, std::int64_t d, const RopeOptions& o) {
  const auto width = static_cast<double>(d), max = static_cast<double>(o.max_length);
  const Tensor length = maximum(lengths, max);
  const Tensor stretch = log(length * (o.factor / max) - (o.factor - 1)) * (width / (width - 2));
  const Tensor log_base = stretch + std::log(o.theta);
  std::vector<double> exponents;
  for (std::int64_t i = 0; i < d / 2; ++i) exponents.push_back(-2 * static_cast<double>(i) / width);
  return exp(as_tensor(lengths, exponents) * log_base);
}

Tensor longrope_frequencies(const Tensor& lengths, std::int64_t d, const RopeOptions& o, const Where& at) {
  const auto half = static_cast<std::size_t>(d / 2);
  if (o.short_factor.size() != half || o.long_factor.size() != half)
    throw UserError(Location(at), "rope",
                    fmt::format("{} short and {} long factors for {} frequencies", o.short_factor.size(),
                                o.long_factor.size(), half),
                    "rope_factors", "give one of each for every frequency");
  const std::vector<double> plain = plain_frequencies(d, o.theta);
  return where(lengths > o.original_length, as_tensor(lengths, divided(plain, o.long_factor)),
               as_tensor(lengths, divided(plain, o.short_factor)));
}

/// Returns the frequencies: [half], or per text [B, 1, half] or [B, T, half].
Tensor frequencies_of(const Tensor& positions, const std::optional<Tensor>& lengths, std::int64_t d,
                      const RopeOptions& o, const Where& at) {
  switch (o.scaling) {
    case Scaling::none: return as_tensor(positions, plain_frequencies(d, o.theta));
    case Scaling::linear: {
      const std::vector<double> factors(static_cast<std::size_t>(d / 2), o.factor);
      return as_tensor(positions, divided(plain_frequencies(d, o.theta), factors));
    }
    case Scaling::dynamic: return dynamic_frequencies(lengths_of(positions, lengths), d, o);
    case Scaling::yarn: return as_tensor(positions, yarn_frequencies(d, o));
    case Scaling::llama3: return as_tensor(positions, llama3_frequencies(d, o));
    case Scaling::longrope: return longrope_frequencies(lengths_of(positions, lengths), d, o, at);
  }
  throw InternalError("a scaling of rotary embedding out of range");
}

bool positive(double value) { return value > 0 && std::isfinite(value); }

/// Checks the options that the selected scaling uses.
void check(const RopeOptions& o, const Where& at) {
  const auto require = [&](bool holds, std::string_view name, const auto& value, std::string_view hint) {
    require_option(at, "rope", "rope_options", holds, name, value, hint);
  };
  constexpr std::string_view above_zero = "give a finite number above 0", length = "give the length in tokens";
  require(o.theta > 1 && std::isfinite(o.theta), "theta", o.theta, "give a finite number above 1");
  require(positive(o.attention_factor.value_or(1)), "attention_factor", o.attention_factor.value_or(1), above_zero);
  if (o.scaling == Scaling::none) return;
  require(positive(o.factor), "factor", o.factor, above_zero);
  if (o.scaling == Scaling::dynamic) require(o.max_length >= 1, "max_length", o.max_length, length);
  const bool stretched = o.scaling == Scaling::yarn || o.scaling == Scaling::llama3 || o.scaling == Scaling::longrope;
  if (stretched) require(o.original_length >= 1, "original_length", o.original_length, length);
  if (o.scaling == Scaling::yarn) {
    require(positive(o.beta_fast), "beta_fast", o.beta_fast, above_zero);
    require(positive(o.beta_slow), "beta_slow", o.beta_slow, above_zero);
  }
  if (o.scaling == Scaling::llama3) {
    require(positive(o.low_frequency), "low_frequency", o.low_frequency, above_zero);
    require(o.high_frequency > o.low_frequency && std::isfinite(o.high_frequency), "high_frequency", o.high_frequency,
            "give a finite number above low_frequency");
  }
}

double attention_factor(const RopeOptions& o) {
  if (o.attention_factor) return *o.attention_factor;
  if (o.scaling == Scaling::yarn) {
    if (o.mscale && o.mscale_all_dim)
      return yarn_scale(o.factor, *o.mscale) / yarn_scale(o.factor, *o.mscale_all_dim);
    return yarn_scale(o.factor, 1);
  }
  if (o.scaling == Scaling::longrope && o.factor > 1)
    return std::sqrt(1 + std::log(o.factor) / std::log(static_cast<double>(o.original_length)));
  return 1;
}

}  // namespace

bool depends_on_length(const RopeOptions& options) {
  return options.scaling == Scaling::dynamic || options.scaling == Scaling::longrope;
}

bool has_same_frequencies(const RopeOptions& options, std::int64_t a, std::int64_t b) {
  if (options.scaling == Scaling::dynamic) return std::max(a, options.max_length) == std::max(b, options.max_length);
  return options.scaling != Scaling::longrope || (a > options.original_length) == (b > options.original_length);
}

RotaryTables rope_tables(const Tensor& positions, const Dim& d, const RopeOptions& options, DType dtype,
                         const std::optional<Tensor>& lengths, Where at) {
  check(options, at);
  const CallSite line(positions, at);
  const auto width = d.value();
  if (!width || *width % 2 != 0)
    throw UserError(Location(at), "rope", fmt::format("{} is not a known even size", d.to_string()), "positions_even",
                    "its two halves are rotated: give an even number");
  if (lengths && lengths->rank() > 2)
    throw UserError(Location(at), "rope", fmt::format("lengths have {} dims", lengths->rank()), "rope_lengths",
                    "give one length for all, [B] or [B, T]");
  const Tensor frequencies = frequencies_of(positions, lengths, *width, options, at);
  const Tensor angles = positions.to(f64).unsqueeze(-1) * frequencies;  // [T, half] or [B, T, half]
  const double factor = attention_factor(options);
  const auto table = [&](const Tensor& values) {
    const Tensor scaled = factor == 1 ? values : values * factor;
    const Tensor twice = concat({scaled, scaled}, -1).to(dtype);  // [.., T, d]
    return angles.rank() == 2 ? twice : twice.unsqueeze(1);       // [B, 1, T, d]
  };
  return {table(cos(angles)), table(sin(angles))};
}

Tensor rotate(const Tensor& x, const RotaryTables& tables, Where at) {
  const CallSite line(x, at);
  const Dim d = x.size(-1), rotated = tables.cos.size(-1);
  if (d == rotated) return rope(x, tables.cos, tables.sin);
  return concat({rope(x.slice(-1, 0, rotated), tables.cos, tables.sin), x.slice(-1, rotated, d)}, -1);
}

}  // namespace lathe::nn
