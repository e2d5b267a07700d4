#include "runtime/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "ir/kernel/printer.h"
#include "ir/tensor/binding.h"
#include "passes/gpu/lower_gpu.h"
#include "passes/lowering/lower.h"
#include "passes/lowering/signature.h"
#include "runtime/cpu_runner.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/machine/cpu_info.h"
#include "runtime/tune/tune.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

struct Executable::Impl {
  ir::Graph signature;  ///< arguments and checks of the graph as given
  Program program;
  CompileSummary summary;
  std::unique_ptr<ProgramRunner> runner;
  ir::Tensors states;  ///< where the runner has newer ones, fetch_states brings them
  std::mutex running;

  DimBindings bind(const ir::Tensors& inputs) const;
  ir::Tensors run(const ir::Tensors& inputs, std::vector<LaunchTime>* times) {
    const std::lock_guard lock(running);
    return runner->run(bind(inputs), inputs, states, times);
  }
};

DimBindings Executable::Impl::bind(const ir::Tensors& inputs) const {
  std::map<std::string, ir::ArgumentShape> shapes;
  for (const auto& [name, tensor] : inputs) shapes[name] = {tensor.dtype(), tensor.shape()};
  for (const auto& [name, tensor] : states) {
    if (shapes.contains(name))
      throw UserError(fmt::format("{} is a parameter or state of @{}, not an input", name, program.name),
                      "argument_unknown", "set it with set_state");
    shapes[name] = {tensor.dtype(), tensor.shape()};
  }
  for (const Program::Slot& slot : program.states)
    if (!states.contains(slot.name))
      throw UserError(fmt::format("the {} {}: {}{} of @{} has no value", slot.is_parameter ? "parameter" : "state",
                                  slot.name, lathe::name(slot.dtype), slot.shape.to_string(), program.name),
                      "state_unset", "set it with set_state before the first run");
  return ir::bind_dims(signature, shapes);
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::set_state(std::string_view name, const HostTensor& value) {
  for (const Program::Slot& slot : impl_->program.states) {
    if (slot.name != name) continue;
    if (slot.dtype != value.dtype())
      throw UserError(
          fmt::format("{} is {}, the value given is {}", name, lathe::name(slot.dtype), lathe::name(value.dtype())),
          "argument_dtype", "cast the value first");
    bool fits = static_cast<std::int64_t>(slot.shape.rank()) == value.rank();
    for (int d = 0; fits && d < slot.shape.rank(); ++d)
      fits = slot.shape[d].value().value_or(value.shape()[static_cast<std::size_t>(d)]) ==
             value.shape()[static_cast<std::size_t>(d)];
    if (!fits)
      throw UserError(fmt::format("{} is {}{}, the value given is {}", name, lathe::name(slot.dtype),
                                  slot.shape.to_string(), shape_to_string(value.shape())),
                      "argument_shape", "give a value of that shape");
    impl_->states[slot.name] = value;
    impl_->runner->state_was_set(slot.name);
    return;
  }
  throw UserError(fmt::format("@{} has no parameter or state named {}", impl_->program.name, name),
                  "argument_unknown", "see program().states for their names");
}

void Executable::set_states(const ir::Tensors& values) {
  for (const auto& [name, value] : values) set_state(name, value);
}

const HostTensor& Executable::state(std::string_view name) const {
  impl_->runner->fetch_states(impl_->states);
  const auto at = impl_->states.find(std::string(name));
  if (at != impl_->states.end()) return at->second;
  for (const Program::Slot& slot : impl_->program.states)
    if (slot.name == name)
      throw UserError(fmt::format("{} of @{} has no value yet", name, impl_->program.name), "state_unset",
                      "set it with set_state");
  throw UserError(fmt::format("@{} has no parameter or state named {}", impl_->program.name, name),
                  "argument_unknown", "see program().states for their names");
}

const ir::Tensors& Executable::states() const {
  impl_->runner->fetch_states(impl_->states);
  return impl_->states;
}
ir::Tensors Executable::run(const ir::Tensors& inputs) { return impl_->run(inputs, nullptr); }
ir::Tensors Executable::run_traced(const ir::Tensors& inputs, std::vector<LaunchTime>& times) {
  return impl_->run(inputs, &times);
}
const CompileSummary& Executable::summary() const { return impl_->summary; }
const Program& Executable::program() const { return impl_->program; }
MemoryPlan Executable::memory_plan(const DimBindings& dims) const { return impl_->runner->memory_plan(dims); }
DimBindings Executable::bind(const ir::Tensors& inputs) const { return impl_->bind(inputs); }

namespace {

int all_cpus() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
int threads_of(const CompileOptions& options) { return options.threads > 0 ? options.threads : all_cpus(); }

codegen::CompiledKernels cpu_kernels(const CompileOptions& options, const Program& program) {
  return codegen::Jit({.target = options.target.cpu, .threads = all_cpus()}, options.cache).compile(program.kernels);
}

std::unique_ptr<ProgramRunner> cpu_runner(const CompileOptions& options, const Program& program,
                                          CompileSummary& summary) {
  codegen::CompiledKernels kernels = cpu_kernels(options, program);
  summary.compiled = kernels.stats().compiled;
  summary.from_cache = kernels.stats().from_store;
  return make_cpu_runner(program, std::move(kernels), threads_of(options), nullptr, options.poison);
}

/// The GPU that a program is to run on.
struct Gpu {
  std::shared_ptr<const cuda::Platform> platform;
  cuda::Arch arch;
};

Gpu gpu_of(const CompileOptions& options) {
  const auto platform = options.gpu ? options.gpu : cuda::local_platform();
  return {platform, cuda::arch_of_device(*platform, options.target.arch)};
}

std::unique_ptr<ProgramRunner> gpu_runner(const CompileOptions& options, const Gpu& gpu, const Program& program,
                                          CompileSummary& summary) {
  const auto kernels = gpu.platform->compile(program.kernels, gpu.arch, options.cache, cuda::Indices::narrow);
  for (const cuda::CompiledKernel& kernel : kernels) ++(kernel.from_store ? summary.from_cache : summary.compiled);
  return cuda::make_cuda_runner(program, kernels, gpu.platform, gpu.arch);
}

Program lowered(const CompileOptions& options, const std::optional<Gpu>& gpu, const ir::Graph& graph,
                const LowerOptions& lowering) {
  if (!gpu) return lower(graph, vector_target(options.target.cpu), lowering);
  return (gpu->arch.has_warp_groups() ? lower_gpu_sm_90a : lower_gpu)(graph, lowering);
}

TuneMachine cpu_to_tune(const CompileOptions& options) {
  return {.name = fmt::format("{}\n{} threads", cpu_info().model, threads_of(options)),
          .code_key = [&](const kernel::Kernel& kernel) { return codegen::object_key(kernel, options.target.cpu); },
          .make_runner =
              [&](const Program& program, const std::vector<bool>& skipped) {
                return make_cpu_runner(program, cpu_kernels(options, program), threads_of(options), &skipped);
              }};
}

TuneMachine gpu_to_tune(const CompileOptions& options, const Gpu& gpu) {
  return {.name = fmt::format("{} {}", gpu.platform->driver->device_name(gpu.platform->device), gpu.arch.name()),
          .code_key = [](const kernel::Kernel& kernel) { return kernel::canonical_text(kernel); },
          .make_runner =
              [&](const Program& program, const std::vector<bool>& skipped) {
                const auto kernels =
                    gpu.platform->compile(program.kernels, gpu.arch, options.cache, cuda::Indices::narrow);
                return cuda::make_cuda_runner(program, kernels, gpu.platform, gpu.arch, &skipped);
              }};
}

/// Tiles as they were measured, or are now.
TileChoices tuned_choices(const CompileOptions& options, const std::optional<Gpu>& gpu, const ir::Graph& graph,
                          CompileSummary& summary) {
  TuneMachine machine = gpu ? gpu_to_tune(options, *gpu) : cpu_to_tune(options);
  machine.store = options.cache;
  machine.lower = [&](const LowerOptions& lowering) { return lowered(options, gpu, graph, lowering); };
  TunedTiles tuned = tune_tiles(graph, options.lower, *options.tune, machine);
  summary.tuned = std::move(tuned.report);
  return std::move(tuned.choices);
}

}  // namespace

Executable compile(const ir::Graph& graph, const CompileOptions& options) {
  auto impl = std::make_unique<Executable::Impl>();
  impl->signature = signature_of(graph);
  impl->summary.ops = graph.size() - static_cast<int>(graph.arguments().size());

  auto start = Clock::now();
  const bool is_gpu = options.target.kind == Target::Kind::cuda;
  const RowChunks chunks = options.lower.chunks.value_or(is_gpu ? RowChunks::gpu() : RowChunks{});
  ir::PipelineResult passed = ir::run_pipeline(graph, ir::default_pipeline(chunks), options.pipeline);
  impl->summary.passes = passed.runs;
  impl->summary.nodes = passed.graph.size();
  impl->summary.pass_seconds = seconds_since(start);

  start = Clock::now();
  if (is_gpu && options.lower.memory)
    throw UserError("a memory budget is kept by code for CPUs alone", "memory_target", "compile for the CPU");
  const std::optional<Gpu> gpu = is_gpu ? std::optional(gpu_of(options)) : std::nullopt;
  LowerOptions lowering = options.lower;
  if (options.tune) lowering.tiles = tuned_choices(options, gpu, passed.graph, impl->summary);
  if (lowering.memory) lowering.memory->threads = threads_of(options);
  impl->program = lowered(options, gpu, passed.graph, lowering);
  set_user_types(impl->program, graph);
  impl->summary.lower_seconds = seconds_since(start);
  impl->summary.kernels = static_cast<int>(impl->program.kernels.size());
  impl->summary.launches = static_cast<int>(impl->program.launches.size());

  start = Clock::now();
  impl->runner = gpu ? gpu_runner(options, *gpu, impl->program, impl->summary)
                     : cpu_runner(options, impl->program, impl->summary);
  impl->summary.codegen_seconds = seconds_since(start);
  return Executable(std::move(impl));
}

}  // namespace lathe
