#pragma once

namespace lathe {

struct CompileOptions;

/// Throws UserError [thread_count] for a number of threads below 0 and [compile_options] for another option that is
/// out of range: it names the option, its value and what to give.
void check(const CompileOptions& options);

}  // namespace lathe
