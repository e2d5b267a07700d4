#include <fmt/core.h>

#include <filesystem>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/prelude/prelude.h"
#include "passes/compile/compilation.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/target.h"
#include "tools/commands/compile/emit_options.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"

namespace lathe::tools {

namespace {

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

}  // namespace

void write_cuda_files(const EmitOptions& options) {
  const std::string kind = options.emit;
  const cuda::Arch arch = arch_of(options.target);  // reject a wrong name for every --emit
  if (kind == "prelude") return write_text(options.output, cuda::prelude());
  if (options.files.size() > 1)
    throw UserError(fmt::format("{} graphs to compile to {}", options.files.size(), kind), "usage",
                    "compile one graph at a time");
  const ir::Graph graph = load_graph(options.files[0], options.source);
  require_chunk_sizes(options.lower, graph, {}, "--fix-dim");
  const Machine machine = machine_of(Target::cuda(arch.name()));
  const Program program = compile_graph(graph, machine, {.lower = options.lower}).program;
  if (kind == "cuda") return write_text(options.output, cuda_text(program, std::get<GpuInfo>(machine.info)));
  write_compiled(program, options, kind == "ptx" ? cuda::Output::ptx : cuda::Output::cubin);
}

}  // namespace lathe::tools
