#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ir/support/tensors/dlpack.h"

namespace lathe {

/// The location of a value of a store: host memory and, once a GPU program has used it, also that GPU's memory. At
/// least one of the two is current.
struct ParameterLocation {
  enum class Host : std::uint8_t {
    own,   ///< memory of the store
    lent,  ///< memory of another owner, such as another store
    file,  ///< pages of a mapped file; pages written by a run are private to the process
  };
  Host host = Host::own;
  std::filesystem::path file = {};            ///< for Host::file
  std::optional<dlpack::Device> device = {};  ///< the GPU that also has the value
  bool host_is_newest = true;                 ///< Parameters::get() needs no copy
  bool device_is_newest = false;              ///< a run on that GPU needs no copy

  /// Returns the device with the current value. Prefers the host if both are current.
  dlpack::Device newest() const { return host_is_newest || !device ? dlpack::Device{} : *device; }
  bool operator==(const ParameterLocation& other) const;
};

/// "memory", "lent memory", "model.safetensors, mapped", "memory and cuda:0", "cuda:0 (memory is older)", "memory
/// (cuda:0 is older)".
std::string to_string(const ParameterLocation& location);

}  // namespace lathe
