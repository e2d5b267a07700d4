#include "runtime/compile.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compilation.h"
#include "passes/compile/gather_choice.h"
#include "passes/compile/ring_choice.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/require_one_process.h"
#include "passes/program/signature.h"
#include "passes/shard/shard.h"
#include "runtime/backend/backend.h"
#include "runtime/compile_options.h"
#include "runtime/executable_impl.h"
#include "runtime/files/sha256.h"
#include "runtime/host/seconds.h"
#include "runtime/ranks/agreement.h"
#include "runtime/tune/tune.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;

int all_cpus() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
int threads_of(const CompileOptions& options) { return options.threads > 0 ? options.threads : all_cpus(); }

/// Returns the number of threads that compile, at most one per CPU, because each needs memory.
int compiling_threads(const CompileOptions& options) { return std::min(threads_of(options), all_cpus()); }

DeviceOptions device_options(const CompileOptions& options) {
  return {.threads = threads_of(options),
          .compiling_threads = compiling_threads(options),
          .own_threads = options.own_threads,
          .cache = options.cache,
          .ranks = options.ranks};
}

/// Checks that all ranks have the same kind of target before they communicate as that kind does.
void compare_targets(const CompileOptions& options) {
  require_agreement(*options.ranks,
                    {{"the target", std::string(options.target.backend->kind()), "give all ranks the same target"}});
}

/// Returns a text of the program's collectives in execution order, for comparison between ranks.
std::string collectives_text(const Program& program) {
  std::string text;
  for (const Collective& collective : program.collectives) {
    text += fmt::format("{} {} {}:", static_cast<int>(collective.kind), collective.axis, collective.offset);
    for (const Collective::Part& part : collective.parts)
      text += fmt::format(" {}[{}]", name(program.buffers[part.from].dtype), part.elements.to_string());
    text += '\n';
  }
  return text;
}

/// Checks before the first run that all ranks have the same graph, devices and compiled code.
void compare_ranks(Ranks& ranks, const Device& device, const ir::Graph& graph, const Program& program) {
  const auto digest = [](std::string_view text) { return sha256_hex(text).substr(0, 16); };
  std::string code = collectives_text(program);
  for (const kernel::Kernel& kernel : program.kernels) code += device.code_key(kernel);
  require_agreement(
      ranks, {{"the graph", digest(ir::print(graph)), "build the same graph with the same splits on all processes"},
              device.claim(),
              {"the compiled code", digest(code), "run the same build of Lathe with the same options"}});
}

/// Returns the fastest tiles, from the cache or measured now.
TuningChoices tuned_choices(const CompileOptions& options, const Device& device, const Compilation& prepared,
                            CompileSummary& summary) {
  const TuneMachine tune{.name = device.tuning_key(),
                         .lower =
                             [&](const LowerOptions& lowering) {
                               Compilation trial = prepared;
                               trial.request.lower = lowering;
                               run_until(trial, "collectives");
                               return std::move(trial.program);
                             },
                         .code_key = [&](const kernel::Kernel& kernel) { return device.code_key(kernel); },
                         .store = options.cache,
                         .make_runner =
                             [&](const Program& program, const std::vector<bool>& skipped) {
                               return device.load(program, {.skipped = &skipped}).runner;
                             }};
  TuningResult tuned = tune_products(prepared.graph, options.lower, *options.tune, tune);
  summary.tuned = std::move(tuned.report);
  return std::move(tuned.choices);
}

/// Returns the lowering options with this process's threads and rank positions in the memory budget.
LowerOptions lowering_of(const CompileOptions& options) {
  LowerOptions lowering = options.lower;
  if (!lowering.memory) return lowering;
  lowering.memory->threads = threads_of(options);
  if (options.ranks)
    lowering.memory->dims.insert(options.ranks->positions().begin(), options.ranks->positions().end());
  return lowering;
}

/// Returns whether `own` is true on every rank. Must be called by all ranks; all get the same result.
bool all_ranks_say(Ranks& ranks, bool own) {
  const std::vector<std::string> all = ranks.gather(own ? "yes" : "no");
  return std::ranges::count(all, "yes") == std::ssize(all);
}

/// Returns the sharding options with a decision on gathered parameters: they are kept for the backward pass if they
/// fit the memory budgets of all ranks.
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
        fmt::format("{}: keeping them needs {} per process, of a budget of {}\n",
                    all_keep ? "gathered parameters are kept for the backward pass"
                    : keeps  ? "parameters are gathered again for the backward pass, as other ranks need"
                             : "parameters are gathered again for the backward pass",
                    format_bytes(kept), format_bytes(options.lower.memory->bytes));
  return parts;
}

/// Rejects splits of a graph that is already sharded.
void require_no_division(const ir::Graph& graph, const CompileOptions& options) {
  if (options.split.empty() && options.parts == shard::ShardOptions{}) return;
  const std::string what = options.split.empty() ? "states or parameters are" : options.split[0].dim + " is";
  throw UserError(fmt::format("compile: {} to be split, but @{} is already sharded over processes", what, graph.name),
                  "divided_already", "shard the global graph, or compile this one without splits");
}

/// Returns whether attention over a split sequence uses ring attention: by the options, or if it is faster or needed
/// to fit the memory budget. All ranks get the same result.
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

/// Shards the graph if it is of one process, then runs the stages up to the graph of this process.
void run_whole_graph(Compilation& now, const CompileOptions& options,
                     std::map<std::string, shard::Placement>& placements, CompileSummary& summary) {
  const PipelineOptions shown{.dump_after = options.pipeline.dump_after, .reproducer = options.pipeline.reproducer};
  if (options.ranks && is_of_one_process(now.graph)) {
    now.request.shard = [&](const ir::Graph& given) {
      shard::ShardOptions parts = chosen_parts(given, options, summary);
      parts.ring = shard::RingWay::never;  // the ring stage decides that later
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

/// Plans the memory of all runs if every size is known.
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

  const std::unique_ptr<Device> device = options.target.backend->open(options.target.name, device_options(options));
  Compilation now = begin_compilation(
      graph, device->machine(),
      {.sizes = options.sizes, .evaluation = options.mode == Mode::evaluation, .lower = lowering_of(options)});
  run_whole_graph(now, options, impl->placements, impl->summary);
  const ir::Graph own = now.graph;
  impl->signature = signature_of(own);
  impl->lookups = ir::index_lookups(own);
  if (options.find_nan) impl->watch = std::make_unique<NonfiniteWatch>(own, options);
  impl->summary.ops = own.size() - static_cast<int>(own.arguments().size());
  run_through(now, Stage::Part::target, options.pipeline);
  impl->summary.nodes = now.graph.size();
  impl->summary.pass_seconds = seconds_since(start);

  start = Clock::now();
  if (options.tune) now.request.lower.tuning = tuned_choices(options, *device, now, impl->summary);
  run_until(now, "collectives");
  impl->program = std::move(now.program);
  impl->summary.passes = std::move(now.runs);
  set_user_types(impl->program, own);
  impl->summary.lower_seconds = seconds_since(start);
  impl->summary.kernels = static_cast<int>(impl->program.kernels.size());
  impl->summary.launches = static_cast<int>(impl->program.launches.size());
  list_parameters(impl->program, impl->summary);

  if (options.ranks) compare_ranks(*options.ranks, *device, own, impl->program);
  start = Clock::now();
  LoadedProgram loaded = device->load(impl->program, {.poison = options.poison, .reserve = options.reserve});
  impl->runner = std::move(loaded.runner);
  impl->summary.compiled = loaded.compiled;
  impl->summary.from_cache = loaded.from_cache;
  impl->summary.codegen_seconds = seconds_since(start);
  DimBindings known = positions;
  if (device->plans_reserved_sizes()) known.insert(options.reserve.begin(), options.reserve.end());
  plan_known_sizes(*impl->runner, now.graph, known, impl->summary);
  add_code_generation(now.machine, impl->summary);
  impl->binder =
      std::make_unique<ArgumentBinder>(impl->signature, impl->program, ir::dims_without_argument(own), positions);
  Executable executable(std::move(impl));
  executable.use(options.parameters.value_or(Parameters()));
  return executable;
}

}  // namespace lathe
