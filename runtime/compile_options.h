#pragma once

namespace lathe {

struct CompileOptions;

/// Throws UserError [thread_count] for a number of threads below 0 and [compile_options] for another option that is
/// out of range: it names the option, its value and what to give.
void check(const CompileOptions& options);

/// Short forms said in the options that they stand for: `mesh` in `ranks`, `shard_states` in `parts`. Throws
/// UserError [compile_options] where both are given and differ, and the errors of Ranks and mpi_processes().
CompileOptions spelled_out(CompileOptions options);

}  // namespace lathe
