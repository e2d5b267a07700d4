#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "runtime/backend.h"
#include "runtime/compile.h"

namespace lathe::tools {

/// Adds --target: what Target::named() takes.
CLI::Option* add_target_option(CLI::App& command, std::string& target);

/// Adds --threads: as many as a thread pool takes, or 0.
CLI::Option* add_threads_option(CLI::App& command, int& threads, const std::string& doc = "0: one a CPU");

/// Options to compile for a --target; CUDA is sought where the environment says. UserError [unknown_target],
/// [unknown_arch], and those of cuda::local_platform where this machine cannot run the target; with `ranks`, each of
/// which then has a GPU of its own, those of cuda::platform_of_rank.
CompileOptions compile_options(const std::string& target, const std::shared_ptr<Ranks>& ranks = nullptr);

/// Opens the device of the options, for its description and its highest rates.
std::unique_ptr<Device> open_device(const CompileOptions& options, int threads);

}  // namespace lathe::tools
