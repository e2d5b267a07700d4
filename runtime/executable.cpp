#include "runtime/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "ir/kernel/printer.h"
#include "ir/support/float_environment.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compile.h"
#include "passes/compile/gather_choice.h"
#include "passes/compile/ring_choice.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/require_one_process.h"
#include "passes/program/signature.h"
#include "passes/shard/shard.h"
#include "passes/transforms/evaluation.h"
#include "passes/transforms/index_lookups.h"
#include "runtime/argument_binder.h"
#include "runtime/compile_options.h"
#include "runtime/cpu_runner.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/ranks/device_groups.h"
#include "runtime/cuda/ranks/rank_platform.h"
#include "runtime/files/sha256.h"
#include "runtime/machine/host_cpu.h"
#include "runtime/machine/seconds.h"
#include "runtime/parameters/parameter_store.h"
#include "runtime/ranks/agreement.h"
#include "runtime/target_machine.h"
#include "runtime/tune/tune.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
}  // namespace

struct Executable::Impl {
  Impl() = default;
  ~Impl() { leave_store(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ir::Graph signature;  ///< arguments and checks of the graph as given
  Program program;
  CompileSummary summary;
  std::shared_ptr<Ranks> ranks;
  std::unique_ptr<ProgramRunner> runner;
  Parameters parameters;
  bool shares_states = false;
  std::mutex running;
  std::unique_ptr<ArgumentBinder> binder;
  ir::IndexLookups lookups;
  std::map<std::string, shard::Placement> placements;  ///< of arguments

  template <class Inputs, class Outputs>
  void run(const Inputs& inputs, Outputs& outputs, const DimBindings& dims, std::vector<LaunchTime>* times);
  template <class Inputs, class Outputs>
  void run_bound(const Inputs& inputs, Outputs& outputs, const DimBindings& dims, std::vector<LaunchTime>* times);
  template <class Run>
  void ending_all(const Run& run) const;
  void leave_store();
  [[noreturn]] void explain_index_error(const UserError& error);
};

/// A run holds the store, in shared mode where it changes nothing in it.
template <class Inputs, class Outputs>
void Executable::Impl::run(const Inputs& inputs, Outputs& outputs, const DimBindings& dims,
                           std::vector<LaunchTime>* times) {
  const std::lock_guard turn(running);
  const FloatEnvironment environment;
  ParameterStore& store = *parameters.store();
  {
    const std::shared_lock lock(store.mutex);
    binder->resolve_states(store);
    if (runner->only_reads(binder->states())) return run_bound(inputs, outputs, dims, times);
  }
  const std::lock_guard lock(store.mutex);
  binder->resolve_states(store);
  run_bound(inputs, outputs, dims, times);
}

template <class Inputs, class Outputs>
void Executable::Impl::run_bound(const Inputs& inputs, Outputs& outputs, const DimBindings& dims,
                                 std::vector<LaunchTime>* times) {
  binder->bind(inputs, dims);
  RunArguments arguments = binder->arguments(outputs);
  arguments.times = times;
  try {
    runner->run(arguments);
    binder->finish(outputs);
  } catch (const UserError& error) {
    if (error.label() != "index_range") throw;
    explain_index_error(error);
  }
}

/// An error on one rank ends all: the others would wait for it.
template <class Run>
void Executable::Impl::ending_all(const Run& run) const {
  ranks ? lathe::ending_all(*ranks, run) : run();
}

void Executable::Impl::explain_index_error(const UserError& error) {
  std::vector<std::string> names;
  for (const ir::ValueId id : lookups.graph.arguments()) names.push_back(lookups.graph[id].name);
  ir::throw_index_error(lookups, binder->copies(names), binder->dims());
  throw error;
}

void Executable::Impl::leave_store() {
  const std::lock_guard lock(parameters.store()->mutex);
  parameters.store()->detach(program);
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

Executable::Impl& Executable::impl() const {
  if (!impl_)
    throw UserError("this Executable was moved to another", "executable_moved",
                    "use the Executable that it was moved to");
  return *impl_;
}

Parameters Executable::parameters() const { return impl().parameters; }

void Executable::use(const Parameters& parameters) {
  const std::lock_guard running(impl().running);
  {
    const std::lock_guard lock(parameters.store()->mutex);
    parameters.store()->attach(impl().program, impl().shares_states);
  }
  if (!(impl().parameters == parameters)) impl().leave_store();
  impl().parameters = parameters;
  impl().binder->forget_states();
}

Tensors Executable::run(const Tensors& inputs, const DimBindings& dims) {
  Tensors outputs;
  impl().ending_all([&] { impl().run(inputs, outputs, dims, nullptr); });
  return outputs;
}

void Executable::run(const InputRefs& inputs, const OutputRefs& outputs, const DimBindings& dims) {
  impl().ending_all([&] { impl().run(inputs, outputs, dims, nullptr); });
}

void Executable::run(const InputRefs& inputs, Tensors& outputs, const DimBindings& dims) {
  impl().ending_all([&] { impl().run(inputs, outputs, dims, nullptr); });
}

Tensors Executable::run_traced(const Tensors& inputs, std::vector<LaunchTime>& times, const DimBindings& dims) {
  Tensors outputs;
  impl().ending_all([&] { impl().run(inputs, outputs, dims, &times); });
  return outputs;
}

DimBindings Executable::bind(const Tensors& inputs, const DimBindings& dims) const {
  const std::lock_guard running(impl().running);
  ParameterStore& store = *impl().parameters.store();
  const std::shared_lock lock(store.mutex);
  impl().binder->resolve_states(store);
  return impl().binder->bind(inputs, dims);
}

const CompileSummary& Executable::summary() const { return impl().summary; }
const std::map<std::string, shard::Placement>& Executable::placements() const { return impl().placements; }
const std::shared_ptr<Ranks>& Executable::ranks() const { return impl().ranks; }
const Program& Executable::program() const { return impl().program; }
MemoryPlan Executable::memory_plan(const DimBindings& dims) const { return impl().runner->memory_plan(dims); }

namespace {

int all_cpus() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
int threads_of(const CompileOptions& options) { return options.threads > 0 ? options.threads : all_cpus(); }

/// That compile at once: no more than there are CPUs, since each takes memory.
int compiling_threads(const CompileOptions& options) { return std::min(threads_of(options), all_cpus()); }

codegen::CompiledKernels cpu_kernels(const CompileOptions& options, const Program& program) {
  const codegen::JitOptions jit{.target = options.target.cpu, .threads = compiling_threads(options)};
  return codegen::Jit(jit, options.cache).compile(program.kernels);
}

std::unique_ptr<ProgramRunner> cpu_runner(const CompileOptions& options, const Program& program,
                                          CompileSummary& summary) {
  const auto start = Clock::now();
  codegen::CompiledKernels kernels = cpu_kernels(options, program);
  summary.codegen_seconds = seconds_since(start);
  summary.compiled = kernels.stats().compiled;
  summary.from_cache = kernels.stats().from_store;
  return make_cpu_runner(program, std::move(kernels),
                         {.threads = threads_of(options),
                          .poison = options.poison,
                          .reserve = options.reserve,
                          .tasks = cpu_info(options.target.cpu).tasks,
                          .ranks = options.ranks.get()});
}

/// The GPU that a program is to run on.
struct Gpu {
  std::shared_ptr<const cuda::Platform> platform;
  cuda::Arch arch;
};

/// What ranks compare before they talk as one kind of machine does.
void compare_targets(const CompileOptions& options) {
  const bool is_gpu = options.target.kind == Target::Kind::cuda;
  require_agreement(*options.ranks, {{"the target", is_gpu ? "a GPU" : "a CPU", "give all ranks the same target"}});
}

/// What ranks exchange, in the order in which they do.
std::string exchanges_text(const Program& program) {
  std::string text;
  for (const Exchange& exchange : program.exchanges) {
    text += fmt::format("{} {} {}:", static_cast<int>(exchange.kind), exchange.axis, exchange.offset);
    for (const Exchange::Part& part : exchange.parts)
      text += fmt::format(" {}[{}]", name(program.buffers[static_cast<std::size_t>(part.from)].dtype),
                          part.elements.to_string());
    text += '\n';
  }
  return text;
}

/// What ranks compare before the first run.
void compare_ranks(const CompileOptions& options, const std::optional<Gpu>& gpu, const ir::Graph& graph,
                   const Program& program) {
  const auto digest = [](std::string_view text) { return sha256_hex(text).substr(0, 16); };
  const codegen::TargetCpu& cpu = options.target.cpu;
  std::string code = exchanges_text(program);
  for (const kernel::Kernel& kernel : program.kernels)
    code += gpu ? kernel::canonical_text(kernel) : codegen::object_key(kernel, cpu);
  const Claim machine =
      gpu ? Claim{"the target GPU", gpu->arch.name(), "give all ranks the lowest one, such as --target cuda:sm_80"}
          : Claim{"the target CPU", fmt::format("{} with features {}", cpu.cpu, digest(cpu.features)),
                  "give all ranks the lowest one, such as --target x86-64-v3"};
  require_agreement(
      *options.ranks,
      {{"the graph", digest(ir::print(graph)), "build the same graph with the same splits on all processes"},
       machine,
       {"the compiled code", digest(code), "run the same build of Lathe with the same options"}});
}

Gpu gpu_of(const CompileOptions& options) {
  auto platform = options.gpu;
  if (!platform) platform = options.ranks ? cuda::platform_of_rank(options.ranks) : cuda::local_platform();
  const cuda::DeviceGroups* groups = platform->groups.get();
  if (options.ranks && (!groups || &groups->ranks() != options.ranks.get()))
    throw UserError("compile: the given GPU does not belong to the ranks", "compile_options",
                    "pass the platform of cuda::platform_of_rank, or none to use it by default");
  return {platform, cuda::arch_of_device(*platform, options.target.arch)};
}

std::vector<cuda::CompiledKernel> gpu_kernels(const CompileOptions& options, const Gpu& gpu, const Program& program) {
  return gpu.platform->compile(program.kernels, gpu.arch, options.cache, cuda::Indices::int32,
                               compiling_threads(options));
}

std::unique_ptr<ProgramRunner> gpu_runner(const CompileOptions& options, const Gpu& gpu, const Program& program,
                                          CompileSummary& summary) {
  const auto start = Clock::now();
  const auto kernels = gpu_kernels(options, gpu, program);
  summary.codegen_seconds = seconds_since(start);
  for (const cuda::CompiledKernel& kernel : kernels) ++(kernel.from_store ? summary.from_cache : summary.compiled);
  return cuda::make_cuda_runner(program, kernels, gpu.platform, gpu.arch, {.threads = compiling_threads(options)});
}

TuneMachine cpu_to_tune(const CompileOptions& options) {
  return {
      .name = fmt::format("{}\n{} threads", host_cpu().model, threads_of(options)),
      .code_key = [&](const kernel::Kernel& kernel) { return codegen::object_key(kernel, options.target.cpu); },
      .make_runner =
          [&](const Program& program, const std::vector<bool>& skipped) {
            return make_cpu_runner(
                program, cpu_kernels(options, program),
                {.threads = threads_of(options), .tasks = cpu_info(options.target.cpu).tasks, .skipped = &skipped});
          }};
}

TuneMachine gpu_to_tune(const CompileOptions& options, const Gpu& gpu) {
  return {.name = fmt::format("{} {}", gpu.platform->driver->device_name(gpu.platform->device), gpu.arch.name()),
          .code_key = [](const kernel::Kernel& kernel) { return kernel::canonical_text(kernel); },
          .make_runner =
              [&](const Program& program, const std::vector<bool>& skipped) {
                return cuda::make_cuda_runner(program, gpu_kernels(options, gpu, program), gpu.platform, gpu.arch,
                                              {.threads = compiling_threads(options), .skipped = &skipped});
              }};
}

/// Tiles as they were measured, or are now.
TuningChoices tuned_choices(const CompileOptions& options, const std::optional<Gpu>& gpu, const Compilation& prepared,
                            CompileSummary& summary) {
  TuneMachine tune = gpu ? gpu_to_tune(options, *gpu) : cpu_to_tune(options);
  tune.store = options.cache;
  tune.lower = [&](const LowerOptions& lowering) {
    Compilation trial = prepared;
    trial.request.lower = lowering;
    run_until(trial, "exchanges");
    return std::move(trial.program);
  };
  TuningResult tuned = tune_products(prepared.graph, options.lower, *options.tune, tune);
  summary.tuned = std::move(tuned.report);
  return std::move(tuned.choices);
}

/// How this process lowers, its threads and its place among the ranks in the memory budget.
LowerOptions lowering_of(const CompileOptions& options) {
  LowerOptions lowering = options.lower;
  if (!lowering.memory) return lowering;
  lowering.memory->threads = threads_of(options);
  if (options.ranks)
    lowering.memory->dims.insert(options.ranks->positions().begin(), options.ranks->positions().end());
  return lowering;
}

/// Whether every rank says so, which all of them learn.
bool all_ranks_say(Ranks& ranks, bool own) {
  const std::vector<std::string> all = ranks.gather(own ? "yes" : "no");
  return std::ranges::count(all, "yes") == std::ssize(all);
}

/// The options of the division, with what the memory budget says of gathered parameters: they are kept where all
/// ranks have room for them.
shard::ShardOptions chosen_parts(const ir::Graph& graph, const CompileOptions& options, CompileSummary& summary) {
  using shard::SecondGather;
  shard::ShardOptions parts = options.parts;
  if (parts.parameters.empty() || parts.second_gather != SecondGather::decide) return parts;
  const bool has_budget = budget_chooses_gathers(parts, options.lower);
  std::int64_t kept = std::numeric_limits<std::int64_t>::max();
  if (has_budget)
    kept = bytes_with_gathered_kept(graph, options.ranks->mesh(), options.split, parts, machine_of(options.target),
                                    lowering_of(options));
  const bool keeps = has_budget && kept <= options.lower.memory->bytes;
  const bool all_keep = all_ranks_say(*options.ranks, keeps);
  parts.second_gather = all_keep ? SecondGather::never : SecondGather::always;
  if (has_budget)
    summary.division +=
        fmt::format("{}: with them a process takes {}, of a budget of {}\n",
                    all_keep ? "gathered parameters are kept for the backward pass"
                    : keeps  ? "parameters are gathered again for the backward pass, as other ranks need"
                             : "parameters are gathered again for the backward pass",
                    format_bytes(kept), format_bytes(options.lower.memory->bytes));
  return parts;
}

/// A graph that was divided is not divided again.
void require_no_division(const ir::Graph& graph, const CompileOptions& options) {
  if (options.split.empty() && options.parts == shard::ShardOptions{}) return;
  const std::string what = options.split.empty() ? "states or parameters are" : options.split[0].dim + " is";
  throw UserError(fmt::format("compile: {} to be split, and @{} is divided over processes already", what, graph.name),
                  "divided_already", "divide the whole graph, or compile this one as it is");
}

/// Whether keys and values of a split sequence go around, as the options say or as it pays. All ranks go by it.
bool has_ring(const ir::Graph& gathered, const CompileOptions& options, CompileSummary& summary) {
  using shard::RingWay;
  if (options.parts.ring != RingWay::decide) return options.parts.ring == RingWay::always;
  const Machine machine = machine_of(options.target);
  const LowerOptions lowering = lowering_of(options);
  const DimBindings dims = lowering.memory ? lowering.memory->dims : options.ranks->positions();
  const RingChoice choice = choose_ring(gathered, machine, lowering, shard::table_rates(machine.info), dims);
  if (choice.why.empty()) return false;
  const bool own = choice.way == RingWay::always, all = all_ranks_say(*options.ranks, own);
  summary.division += own && !all ? "keys and values are gathered, as other ranks need\n" : choice.why;
  return all;
}

/// The graph of this process, as it is evaluated or trained.
void run_whole_graph(Compilation& now, const CompileOptions& options,
                     std::map<std::string, shard::Placement>& placements, CompileSummary& summary) {
  const ir::PipelineOptions shown{.dump_after = options.pipeline.dump_after,
                                  .reproducer = options.pipeline.reproducer};
  if (options.ranks && is_of_one_process(now.graph)) {
    now.request.shard = [&](const ir::Graph& given) {
      shard::ShardOptions parts = chosen_parts(given, options, summary);
      parts.ring = shard::RingWay::never;  // a stage of its own
      shard::Sharded sharded = shard::shard(given, options.ranks->mesh(), options.split, parts);
      placements = std::move(sharded.arguments);
      return std::move(sharded.graph);
    };
    run_until(now, "shard", shown);
    now.request.shard = {};
    now.request.ring = has_ring(now.graph, options, summary);
  }
  run_through(now, Stage::Part::whole_graph, shown);
}

/// Where every size is known by now, so is the memory of all runs.
void plan_known_sizes(ProgramRunner& runner, const ir::Graph& graph, const DimBindings& known,
                      CompileSummary& summary) {
  if (!ir::unbound_dims(graph, known).empty()) return;
  const auto start = Clock::now();
  const std::int64_t bytes = runner.plan(known);
  summary.passes.push_back({"memory-plan", seconds_since(start), graph.size(), graph.size(),
                            fmt::format("an arena of {}", format_bytes(bytes))});
}

void list_parameters(const Program& program, CompileSummary& summary) {
  for (const Program::Slot& slot : program.states)
    if (slot.is_parameter) (slot.is_updated ? summary.trained : summary.not_trained).push_back(slot.name);
}

void add_code_generation(const Machine& machine, CompileSummary& summary) {
  summary.passes.push_back(
      {machine.code.back().name, summary.codegen_seconds, summary.nodes, summary.nodes,
       fmt::format("{} kernels compiled, {} from the cache", summary.compiled, summary.from_cache)});
}

}  // namespace

Executable compile(const ir::Graph& graph, const CompileOptions& given) {
  const CompileOptions options = spelled_out(given);
  check(options);
  const FloatEnvironment environment;
  auto start = Clock::now();
  auto impl = std::make_unique<Executable::Impl>();
  impl->ranks = options.ranks;
  impl->shares_states = options.share_states;
  const DimBindings positions = options.ranks ? options.ranks->positions() : DimBindings();
  if (options.ranks) compare_targets(options);
  if (options.lower.memory) require_budget_support(machine_of(options.target));
  if (!options.ranks)
    require_one_process(graph);
  else if (!is_of_one_process(graph))
    require_no_division(graph, options);

  const bool is_gpu = options.target.kind == Target::Kind::cuda;
  const std::optional<Gpu> gpu = is_gpu ? std::optional(gpu_of(options)) : std::nullopt;
  Target target = options.target;
  if (gpu) target.arch = gpu->arch;
  Compilation now = begin_compilation(
      graph, machine_of(target),
      {.sizes = options.sizes, .evaluation = options.mode == Mode::evaluation, .lower = lowering_of(options)});
  run_whole_graph(now, options, impl->placements, impl->summary);
  const ir::Graph own = now.graph;
  impl->signature = signature_of(own);
  impl->lookups = ir::index_lookups(own);
  impl->summary.ops = own.size() - static_cast<int>(own.arguments().size());
  run_through(now, Stage::Part::target, options.pipeline);
  impl->summary.nodes = now.graph.size();
  impl->summary.pass_seconds = seconds_since(start);

  start = Clock::now();
  if (options.tune) now.request.lower.tuning = tuned_choices(options, gpu, now, impl->summary);
  run_until(now, "exchanges");
  impl->program = std::move(now.program);
  impl->summary.passes = std::move(now.runs);
  set_user_types(impl->program, own);
  impl->summary.lower_seconds = seconds_since(start);
  impl->summary.kernels = static_cast<int>(impl->program.kernels.size());
  impl->summary.launches = static_cast<int>(impl->program.launches.size());
  list_parameters(impl->program, impl->summary);

  if (options.ranks) compare_ranks(options, gpu, own, impl->program);
  impl->runner = gpu ? gpu_runner(options, *gpu, impl->program, impl->summary)
                     : cpu_runner(options, impl->program, impl->summary);
  DimBindings known = positions;
  if (!gpu) known.insert(options.reserve.begin(), options.reserve.end());
  plan_known_sizes(*impl->runner, now.graph, known, impl->summary);
  add_code_generation(now.machine, impl->summary);
  impl->binder =
      std::make_unique<ArgumentBinder>(impl->signature, impl->program, ir::dims_without_argument(own), positions);
  Executable executable(std::move(impl));
  executable.use(options.parameters.value_or(Parameters()));
  return executable;
}

}  // namespace lathe
