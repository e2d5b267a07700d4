#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ir/support/tensors/dlpack.h"

namespace lathe {

/// Where a value of a store lies: in memory of the host, and once a program on a GPU has worked on it, in the memory
/// of that GPU too. At least one of the two is the newest.
struct ParameterLocation {
  enum class Host : std::uint8_t {
    own,   ///< memory of the store
    lent,  ///< memory of somebody else, such as that of another store
    file,  ///< pages of a mapped file; those that a run has written are the process's own
  };
  Host host = Host::own;
  std::filesystem::path file = {};            ///< of Host::file
  std::optional<dlpack::Device> device = {};  ///< the GPU that has it too
  bool host_is_newest = true;                 ///< what Parameters::get() gives lies there already
  bool device_is_newest = false;              ///< a run on that GPU copies nothing

  /// Where its newest value lies: the host where that is as new as the GPU's.
  dlpack::Device newest() const { return host_is_newest || !device ? dlpack::Device{} : *device; }
  bool operator==(const ParameterLocation& other) const;
};

/// "memory", "lent memory", "model.safetensors, mapped", "memory and cuda:0", "cuda:0 (memory is older)", "memory
/// (cuda:0 is older)".
std::string to_string(const ParameterLocation& location);

}  // namespace lathe
