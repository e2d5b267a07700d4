#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/ranks/mpi/plugin_abi.h"

namespace lathe {

/// The functions of liblathe_mpi.so: runtime/ranks/mpi/plugin_abi.h. It stays loaded until the process ends.
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

  /// "Open MPI v4.1.4": the first words of the library's version.
  std::string name() const;
  /// Throws UserError [mpi_failed] with MPI's text, unless the status is 0.
  void check(int status, const std::string& what) const;
};

/// Loads the plugin: the file, where one is given, else liblathe_mpi.so beside this library, beside the program, in
/// the folder of libraries beside that, and where the system has its libraries. Throws UserError [mpi_plugin] where
/// there is none, and for one of another Lathe.
MpiLibrary load_mpi_library(const std::filesystem::path& file = {});

}  // namespace lathe
