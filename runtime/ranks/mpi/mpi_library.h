#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/ranks/mpi/plugin_abi.h"

namespace lathe {

/// The functions of liblathe_mpi.so (runtime/ranks/mpi/plugin_abi.h). It stays loaded until the process ends.
struct MpiLibrary {
  decltype(&lathe_mpi_abi) abi = nullptr;
  decltype(&lathe_mpi_library) library = nullptr;
  decltype(&lathe_mpi_error_text) error_text = nullptr;
  decltype(&lathe_mpi_can_begin) can_begin = nullptr;
  decltype(&lathe_mpi_begin) begin = nullptr;
  decltype(&lathe_mpi_end) end = nullptr;
  decltype(&lathe_mpi_start) start = nullptr;
  decltype(&lathe_mpi_progress) progress = nullptr;
  decltype(&lathe_mpi_is_done) is_done = nullptr;
  decltype(&lathe_mpi_drop) drop = nullptr;
  decltype(&lathe_mpi_abort) abort = nullptr;

  /// Returns the first words of the library's version: "Open MPI v4.1.4".
  std::string name() const;
  /// Throws UserError [mpi_failed] with MPI's text, unless the status is 0.
  void check(int status, const std::string& what) const;
};

/// Loads the plugin from `file` if it is set. Otherwise, searches for liblathe_mpi.so in the folder of this library,
/// the folder of the program, the library folder next to that, and the system's library folders. Throws UserError
/// [mpi_plugin] if it is not found or belongs to another version of Lathe.
MpiLibrary load_mpi_library(const std::filesystem::path& file = {});

}  // namespace lathe
