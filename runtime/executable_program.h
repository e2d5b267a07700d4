#pragma once

#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"
#include "runtime/executable.h"

/// What an executable was lowered to, for the command, benchmarks and tests. This header is not installed:
/// CompileSummary and `lathe dump` describe programs to users.
namespace lathe {

/// Returns the lowered program. It lives as long as the executable. Throws UserError [executable_moved].
const Program& program_of(const Executable& executable);
/// Returns the memory plan for these dims. Throws UserErrors [executable_moved], [dim_unbound].
MemoryPlan memory_plan_of(const Executable& executable, const DimBindings& dims);

}  // namespace lathe
