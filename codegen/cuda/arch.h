#pragma once

#include <string>
#include <string_view>

namespace lathe::cuda {

/// A GPU architecture by its exact name: "sm_80", "sm_90a" (with features specific to that chip), "sm_100a".
struct Arch {
  int number = 80;
  std::string suffix = {};  ///< "", "a" or "f"

  std::string name() const;          ///< "sm_90a"
  std::string virtual_name() const;  ///< "compute_90a", for PTX
  bool operator==(const Arch&) const = default;

  /// Throws UserError [unknown_arch] for an invalid name, or an architecture below sm_80.
  static Arch named(std::string_view name);
};

}  // namespace lathe::cuda
