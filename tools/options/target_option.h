#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "runtime/backend/backend.h"
#include "runtime/compile.h"

namespace lathe::tools {

/// Adds --target. Accepts the names of Target::named().
CLI::Option* add_target_option(CLI::App& command, std::string& target);

/// Adds --threads: 0, or up to the maximum size of a thread pool.
CLI::Option* add_threads_option(CLI::App& command, int& threads,
                                const std::string& doc = "Number of threads; 0 uses one per CPU");

/// Returns options to compile for a --target. Searches for CUDA as the environment specifies. Throws UserError
/// [unknown_target], [unknown_arch], and those of cuda::local_platform if this machine cannot run the target. With
/// `ranks`, each process has its own GPU; then throws those of cuda::platform_of_rank.
CompileOptions compile_options(const std::string& target, const std::shared_ptr<Ranks>& ranks = nullptr);

/// Opens the device of the options, for its description and its highest rates.
std::unique_ptr<Device> open_device(const CompileOptions& options, int threads);

}  // namespace lathe::tools
