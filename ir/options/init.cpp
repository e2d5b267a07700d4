#include "ir/options/init.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/support/error.h"

namespace lathe {

std::optional<std::string> Init::fault() const {
  switch (kind) {
    case Kind::automatic:
    case Kind::constant:  // any value, -inf and NaN too
    case Kind::values: return std::nullopt;
    case Kind::normal:
      if (!std::isfinite(a)) return fmt::format("a normal distribution around {}", a);
      if (!(b >= 0 && std::isfinite(b))) return fmt::format("a standard deviation of {}", b);
      return std::nullopt;
    case Kind::uniform:
      if (!(std::isfinite(a) && std::isfinite(b) && a <= b))
        return fmt::format("a uniform distribution in [{}, {})", a, b);
      return std::nullopt;
    case Kind::xavier_uniform:
    case Kind::xavier_normal:
    case Kind::kaiming_normal:
      if (!(a >= 0 && std::isfinite(a))) return fmt::format("a gain of {}", a);
      return std::nullopt;
  }
  throw InternalError("an initial distribution out of range");
}

void check_init(const Init& init, std::string_view name, const Location& at) {
  const auto fault = init.fault();
  if (!fault) return;
  const std::string message = fmt::format("{} starts from {}", name, *fault);
  const char* hint = "standard deviations and gains are 0 or more, bounds in order, and all of them finite";
  if (at.known()) throw UserError(at, "initial values", message, "init_options", hint);
  throw UserError(message, "init_options", hint);
}

namespace {

struct Fan {
  double in = 1, out = 1;
};
/// Fan of a weight [out.., in]: the last dim is fan_in.
Fan fan_of(const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return {};
  double all = 1;
  for (const std::int64_t size : sizes) all *= static_cast<double>(std::max<std::int64_t>(1, size));
  const double in = static_cast<double>(std::max<std::int64_t>(1, sizes.back()));
  return {in, all / in};
}

}  // namespace

Init resolved_init(const Init& init, const std::vector<std::int64_t>& sizes) {
  const Fan fan = fan_of(sizes);
  switch (init.kind) {
    case Init::Kind::automatic:
      return sizes.size() >= 2 ? Init::normal({.deviation = 1 / std::sqrt(fan.in)}) : Init::zeros();
    case Init::Kind::xavier_uniform: {
      const double limit = init.a * std::sqrt(6 / (fan.in + fan.out));
      return Init::uniform({.low = -limit, .high = limit});
    }
    case Init::Kind::xavier_normal: return Init::normal({.deviation = init.a * std::sqrt(2 / (fan.in + fan.out))});
    case Init::Kind::kaiming_normal: return Init::normal({.deviation = init.a / std::sqrt(fan.in)});
    case Init::Kind::constant:
    case Init::Kind::normal:
    case Init::Kind::uniform:
    case Init::Kind::values: return init;
  }
  throw InternalError("an initial distribution out of range");
}

std::uint64_t random_stream(std::string_view name) {  // FNV-1a, 64 bits
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace lathe
