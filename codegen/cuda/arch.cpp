#include "codegen/cuda/arch.h"

#include <charconv>

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::cuda {

std::string Arch::name() const { return fmt::format("sm_{}{}", number, suffix); }
std::string Arch::virtual_name() const { return fmt::format("compute_{}{}", number, suffix); }

Arch Arch::named(std::string_view name) {
  const auto fail = [&](std::string_view why) -> UserError {
    return UserError(fmt::format("'{}' {}", name, why), "unknown_arch",
                     "give the exact architecture: sm_80 (A100), sm_90a (H100, H200), sm_100a (B200)");
  };
  Arch arch;
  if (!name.starts_with("sm_")) throw fail("is no GPU architecture");
  const char *first = name.data() + 3, *last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, arch.number);
  arch.suffix.assign(end, last);
  const bool plain = arch.suffix.empty() || arch.suffix == "a" || arch.suffix == "f";
  if (error != std::errc() || !plain || arch.number > 999) throw fail("is no GPU architecture");
  if (arch.number < 80) throw fail("is older than sm_80, the first that Lathe compiles for");
  return arch;
}

}  // namespace lathe::cuda
