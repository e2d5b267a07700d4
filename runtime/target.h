#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

class Backend;   // runtime/backend/backend.h
class Ranks;     // runtime/ranks/ranks.h
struct Machine;  // passes/lowering/machine.h

/// The target of a compilation: a backend, and the name of a machine with its features.
struct Target {
  std::shared_ptr<const Backend> backend;
  std::string name;  ///< "host", "x86-64-v3", "host,-amx-bf16", "cuda", "cuda:sm_90a"

  /// Returns the CPU that this process runs on.
  static Target host();
  /// Returns an NVIDIA GPU: "sm_90a" and the like, or the architecture of the GPU in this machine. Throws UserError
  /// [unknown_arch].
  static Target cuda(std::string_view arch = {});
  /// Returns the target with this name: "host", "x86-64-v2", "x86-64-v3", "x86-64-v4", "cuda" or "cuda:" and an
  /// architecture, such as "cuda:sm_90a". Throws UserError [unknown_target], [unknown_arch]; [unknown_cpu] for
  /// unknown features after a comma.
  static Target named(std::string_view name);

  /// Returns the same target with its device chosen and its libraries opened, from `folders` first: programs that
  /// are compiled for it share them. With ranks it must be called by all of them. Throws UserErrors if this machine
  /// cannot run the target.
  Target on_device(const std::shared_ptr<Ranks>& ranks = nullptr,
                   const std::vector<std::filesystem::path>& folders = {}) const;
};

/// Returns the machine that a target compiles for.
Machine machine_of(const Target& target);

}  // namespace lathe
