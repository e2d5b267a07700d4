#pragma once

#include <CLI/App.hpp>
#include <string>

#include "runtime/executable.h"
#include "runtime/trace/trace.h"

namespace lathe::tools {

/// Adds --target: what Target::named() takes.
CLI::Option* add_target_option(CLI::App& command, std::string& target);

/// Adds --threads: as many as a thread pool takes, or 0.
CLI::Option* add_threads_option(CLI::App& command, int& threads,
                                const std::string& doc = "Number of threads; 0 uses one per CPU");

/// Options to compile for a --target; CUDA is sought where the environment says. UserError [unknown_target],
/// [unknown_arch], and those of cuda::local_platform where this machine cannot run the target; with `ranks`, each of
/// which then has a GPU of its own, those of cuda::platform_of_rank.
CompileOptions compile_options(const std::string& target, const std::shared_ptr<Ranks>& ranks = nullptr);

/// "2 threads", or the GPU's name.
std::string machine_name(const CompileOptions& options, int threads);
/// What the machine of a target reaches: measured on a CPU, what the driver tells of a GPU.
MachineRates machine_rates(const CompileOptions& options, int threads);

}  // namespace lathe::tools
