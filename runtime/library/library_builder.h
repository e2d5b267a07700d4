#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/llvm/library/library_code.h"
#include "runtime/library/library_machine.h"
#include "runtime/library/library_options.h"
#include "runtime/library/library_plan.h"

namespace lathe {

/// Returns the name of a target as a part of symbols: "x86_64_v3".
std::string level_symbol(std::string target);

/// Throws UserError [library_target] if no call would use a target, because a later target runs on all of its
/// machines: `covers(later, earlier)`. Calls use the last target that the machine supports.
void require_used_targets(const std::vector<std::string>& targets,
                          const std::function<bool(std::size_t later, std::size_t earlier)>& covers);

/// Returns the code of a library. `levels` are those of the plan's targets, without kernels. Throws UserError
/// [dim_overflow] if a size does not fit 63 bits at the largest dims, [init_values] for a wrong number of values, and
/// [one_process] for a program with collectives.
codegen::Library library_code(const LibraryPlan& plan, const LibraryMachine& machine,
                              std::vector<codegen::LibraryLevel> levels);

/// Compiles the objects of a library on up to `threads` threads, and makes its archive.
EmittedLibrary library_objects(const codegen::Library& code, int threads);

}  // namespace lathe
