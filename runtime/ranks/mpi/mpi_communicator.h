#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

#include "runtime/ranks/communicator.h"

namespace lathe {

struct MpiOptions {
  std::filesystem::path plugin = {};  ///< path of liblathe_mpi.so; empty: search as load_mpi_library() does
  /// Maximum message size in bytes; larger messages are split. MPI counts in int.
  std::int64_t most_bytes = std::numeric_limits<int>::max();
};

/// Returns a function that creates the communicator of the processes started by mpirun, using the plugin:
///
///   auto ranks = std::make_shared<Ranks>(mpi_processes(), shard::Mesh::parse("data=4,model=2"));
///   Executable exe = compile(step, {.ranks = ranks, .split = {{"B", "data"}}});
///
/// It initializes MPI. MPI is finalized when the communicator and all groups derived from it are destroyed, unless
/// the process had initialized MPI itself. This works once per process. abort() writes its reason to standard error
/// and calls MPI_Abort. The function throws UserError [mpi_plugin] if there is no plugin and [mpi_once] when called a
/// second time. It and all functions of the communicator throw [mpi_failed] with MPI's error text if an MPI call
/// fails.
MakeCommunicator mpi_processes(const MpiOptions& options = {});

}  // namespace lathe
