#pragma once

namespace lathe {

struct CompileOptions;

/// Throws UserError [thread_count] for a negative number of threads, and [compile_options] for any other option that
/// is out of range, with its name, its value and the valid values.
void check(const CompileOptions& options);

/// Replaces shorthands: `mesh` by `ranks`, `shard_states` by `parts`. Throws UserError [compile_options] if both
/// forms are given and differ, and the errors of Ranks and mpi_processes().
CompileOptions spelled_out(CompileOptions options);

}  // namespace lathe
