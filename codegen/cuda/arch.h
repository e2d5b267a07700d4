#pragma once

#include <string>
#include <string_view>

namespace lathe::cuda {

/// A GPU architecture by its exact name: "sm_80", "sm_90a" (with what only that chip has), "sm_100a".
struct Arch {
  int number = 80;
  std::string suffix = {};  ///< "", "a" or "f"

  std::string name() const;          ///< "sm_90a"
  std::string virtual_name() const;  ///< "compute_90a", for PTX
  bool has_warpgroups() const;       ///< wgmma, which is sm_90a's alone
  bool operator==(const Arch&) const = default;

  /// UserError [unknown_arch] for what is no such name, or below sm_80.
  static Arch named(std::string_view name);
};

}  // namespace lathe::cuda
