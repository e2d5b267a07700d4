#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

#include "runtime/ranks/communicator.h"

namespace lathe {

struct MpiOptions {
  std::filesystem::path plugin = {};  ///< liblathe_mpi.so; empty: where load_mpi_library() seeks it
  /// The most bytes of a message: larger ones go in pieces of that size, or of less. MPI counts in int.
  std::int64_t most_bytes = std::numeric_limits<int>::max();
};

/// What makes the communicator among the processes that an mpirun has started, by the plugin:
///
///   auto ranks = std::make_shared<Ranks>(mpi_processes(), shard::Mesh::parse("data=4,model=2"));
///   Executable exe = compile(step, {.ranks = ranks, .split = {{"B", "data"}}});
///
/// MPI begins with it and ends when the communicator and all groups made of it are gone, once in a process; a
/// process that began MPI itself ends it itself. abort() writes why to standard error and ends all processes by
/// MPI_Abort. What it makes throws UserError [mpi_plugin] where there is no plugin, [mpi_once] for a second time, and
/// [mpi_failed] with the text of MPI where a call fails, as all its functions do.
MakeCommunicator mpi_processes(const MpiOptions& options = {});

}  // namespace lathe
