#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/prelude/prelude.h"
#include "passes/compile/compilation.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/target.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"
#include "tools/options/number_option.h"
#include "tools/plugins/op_libraries.h"

namespace lathe::tools {

namespace {

struct EmitOptions {
  std::vector<std::string> ops;
  std::string file, output = "-", target = "cuda:sm_90a", emit = "cuda";
  int threads = 2;
  LowerOptions lower;
};

/// Maps "cuda:sm_90a" to sm_90a, and "cuda" to the oldest supported architecture.
cuda::Arch arch_of(const std::string& target) {
  if (target == "cuda") return {};
  const std::string start = "cuda:";
  if (!target.starts_with(start))
    throw UserError(fmt::format("'{}' is not a target of compile", target), "unknown_target",
                    "give cuda, or a GPU architecture such as cuda:sm_90a");
  return cuda::Arch::named(target.substr(start.size()));
}

/// Returns the source of all kernels as one text that includes lathe.cuh once.
std::string cuda_text(const Program& program, const GpuInfo& gpu) {
  std::string text;
  for (const kernel::Kernel& kernel : program.kernels) {
    const std::string one = cuda::emit(kernel, gpu);
    text += text.empty() ? one : one.substr(one.find('\n') + 1);
  }
  return text;
}

/// Writes the PTX of all kernels, or one cubin per kernel to the folder `output`, with the resources of each kernel.
void write_compiled(const Program& program, const EmitOptions& options, cuda::Output output) {
  if (output == cuda::Output::cubin && options.output == "-")
    throw UserError("cubin files cannot be written to standard output", "usage", "give a folder with -o");
  const cuda::Nvrtc nvrtc(cuda_folders());
  DiskCache cache(cache_folder());
  const cuda::Arch arch = arch_of(options.target);
  const auto kernels = cuda::compile_kernels(nvrtc, program.kernels, arch, output, &cache, options.threads);
  if (output == cuda::Output::ptx) {
    std::string text;
    for (const cuda::CompiledKernel& kernel : kernels) text += kernel.code + "\n";
    return write_text(options.output, text);
  }
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error) throw UserError(fmt::format("cannot create {}: {}", options.output, error.message()), "file_write");
  std::string report;
  for (const cuda::CompiledKernel& kernel : kernels) {
    const std::string name = kernel.symbol + ".cubin";
    write_text((std::filesystem::path(options.output) / name).string(), kernel.code);
    report += fmt::format("{:<60} {}{}\n", name, kernel.resources.to_string(), kernel.from_store ? ", cached" : "");
  }
  write_text("-", report);
}

void run(const EmitOptions& options) {
  const cuda::Arch arch = arch_of(options.target);  // reject a wrong name for every --emit
  if (options.emit == "header") return write_text(options.output, cuda::prelude());
  const ir::Graph graph = load_graph(options.file, load_ops(options.ops));
  const Machine machine = machine_of(Target::cuda(arch.name()));
  const Program program = compile_graph(graph, machine, {.lower = options.lower}).program;
  if (options.emit == "cuda") return write_text(options.output, cuda_text(program, std::get<GpuInfo>(machine.info)));
  write_compiled(program, options, options.emit == "ptx" ? cuda::Output::ptx : cuda::Output::cubin);
}

}  // namespace

void add_compile(CLI::App& app) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("compile", "Compile a graph for a GPU; no GPU is needed");
  command->add_option("FILE", options->file, "IR text file, or model directory")->required();
  add_ops_option(*command, options->ops);
  command->add_option("-o,--output", options->output, "Output file, or folder for cubin; - is standard output")
      ->capture_default_str();
  command
      ->add_option("--target", options->target,
                   "GPU architecture to compile for, such as cuda:sm_90a, or cuda for the oldest supported one")
      ->capture_default_str();
  command
      ->add_option("--emit", options->emit,
                   "Output format: cuda (CUDA C++), header (lathe.cuh, which that code includes), ptx or cubin")
      ->capture_default_str()
      ->check(CLI::IsMember({"cuda", "header", "ptx", "cubin"}));
  between(command->add_option("--threads", options->threads, "Number of compiler threads"), 1, 64)
      ->capture_default_str();
  add_lower_options(*command, options->lower);
  command->footer(
      "Examples:\n"
      "  lathe compile attention.lathe --emit=cuda -o attention.cu\n"
      "  lathe compile attention.lathe --target=cuda:sm_80 --emit=ptx -o attention.ptx\n"
      "  lathe compile attention.lathe --target=cuda:sm_90a --emit=cubin -o kernels");
  command->callback([options] { run(*options); });
}

}  // namespace lathe::tools
