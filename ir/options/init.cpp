#include "frontend/init.h"

#include <fmt/core.h>

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

}  // namespace lathe
