#pragma once

#include "ir/support/tensors/tensors.h"
#include "runtime/backend/backend.h"

namespace lathe {

/// Runs a program once, such as one from parse_program, on a device of one process. Memory is filled with NaNs before
/// the run. Returns outputs by name, and updated states and parameters. `dims` are sizes that no argument determines.
/// compile() runs a graph many times.
///
/// Throws UserError [one_process] for a program with collectives, [result_name] if an output and an updated state
/// have one name, and those of Device::load and Executable::run. Does not verify the program.
Tensors run_program(const Program& program, const Device& device, const Tensors& arguments,
                    const DimBindings& dims = {});

}  // namespace lathe
