#pragma once

#include <CLI/App.hpp>
#include <string>

#include "runtime/executable.h"
#include "runtime/trace/trace.h"

namespace lathe::tools {

/// Adds --target: what Target::named() takes.
CLI::Option* add_target_option(CLI::App& command, std::string& target);

/// Options to compile for a --target; CUDA is sought where the environment says. UserError [unknown_target],
/// [unknown_arch], and those of cuda::local_platform where this machine cannot run the target.
CompileOptions compile_options(const std::string& target);

/// "2 threads", or the GPU's name.
std::string machine_name(const CompileOptions& options, int threads);
/// What the machine of a target reaches: measured on a CPU, what the driver tells of a GPU.
MachineRates machine_rates(const CompileOptions& options, int threads);

}  // namespace lathe::tools
