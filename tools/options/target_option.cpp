#include "tools/options/target_option.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "codegen/llvm/target_cpu.h"
#include "ir/support/nearest.h"
#include "tools/environment.h"
#include "tools/options/number_option.h"

namespace lathe::tools {

CLI::Option* add_target_option(CLI::App& command, std::string& target) {
  return command
      .add_option("--target", target,
                  fmt::format("Target to compile for: {}, cuda, or a GPU architecture such as cuda:sm_90a; "
                              "host,-amx-bf16 disables AMX",
                              list_of(codegen::TargetCpu::names())))
      ->capture_default_str();
}

CLI::Option* add_threads_option(CLI::App& command, int& threads, const std::string& doc) {
  return between(command.add_option("--threads", threads, doc), 0, 1024)->capture_default_str();
}

CompileOptions compile_options(const std::string& target, const std::shared_ptr<Ranks>& ranks) {
  return {.target = Target::named(target).on_device(ranks, cuda_folders())};
}

std::unique_ptr<Device> open_device(const CompileOptions& options, int threads) {
  return options.target.backend->open(options.target.name, {.threads = threads, .compiling_threads = threads});
}

}  // namespace lathe::tools
