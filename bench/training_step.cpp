// Whole training steps (forward, backward and AdamW) compared with the machine's FMA peak; decoding steps compared
// with its read bandwidth.
//   bench_training_step [NAME ...] [--steps N] [--threads N] [--clip NORM] [--norm] [--precision f32|bf16|f16]
//                       [--top LINES] [--tune SECONDS] [--known-sizes] [--chunk-rows N] [--cpu CPU]
//   bench_training_step NAME --serve [--export FILE] [--clip NORM] [--precision P]
//   mpirun -n N bench_training_step NAME --serve --mesh data=N [--split B:data] [--states AXIS] [--parameters AXIS]
//   [--mpi PLUGIN]
// --norm: the norm of the gradients is an output of every step. Without it and --clip it is not computed, as in the
// peers' steps.
// --tune: first measures matmul tile sizes, then alternates steps with and without the tuned ones. The result is not
// saved.
// NAME: gpt2, gpt2-1024, encoder-decoder, llama-block, or LAYERSxD_MODELxHEADSxVOCABxBATCHxSEQUENCE for a GPT, or
// decode-CONTEXT.
// --known-sizes: compiles for the sizes of this batch only. --chunk-rows: does so too, and alternates steps whose
// logits are computed in chunks of N rows with steps that compute all logits at once.
// --cpu: compilation target, such as host,-amx-bf16.
// --serve is for bench/run_steps.py and run_ranks.py: reads commands line by line, answers with lines of JSON.
// --export writes the parameters and the batch that the peers start from.
// --mesh: shards the step over the processes started by mpirun, like `lathe train --mesh`; the batch is the global
// one. Rank 0 reads commands and answers.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "bench/cases/step_cases.h"
#include "bench/memory_floor.h"
#include "frontend/train/training.h"
#include "ir/tensor/binding.h"
#include "passes/memory/memory_plan.h"
#include "passes/shard/predict/predicted_bytes.h"
#include "passes/shard/shard.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/peak.h"
#include "runtime/host/seconds.h"
#include "runtime/ranks/mpi/mpi_communicator.h"
#include "runtime/ranks/whole_tensors.h"
#include "runtime/trace/trace.h"

namespace {

using namespace lathe;
using namespace lathe::bench;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> names;
  int steps = 10, threads = usable_cpus(), top = 0;
  std::int64_t chunk_rows = 0;
  double clip = 0, tune = 0;
  DType precision = f32;
  bool serve = false, norm = false, known_sizes = false;
  std::string exported, cpu = "host";
  std::string mesh, splits = "B:data", mpi;
  shard::ShardOptions parts = {};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (argument == "--steps") {
      options.steps = std::max(1, std::atoi(value()));
    } else if (argument == "--threads") {
      options.threads = std::max(1, std::atoi(value()));
    } else if (argument == "--top") {
      options.top = std::atoi(value());
    } else if (argument == "--clip") {
      options.clip = std::atof(value());
    } else if (argument == "--tune") {
      options.tune = std::atof(value());
    } else if (argument == "--known-sizes") {
      options.known_sizes = true;
    } else if (argument == "--chunk-rows") {
      options.chunk_rows = std::atoll(value());
      options.known_sizes = true;
    } else if (argument == "--norm") {
      options.norm = true;
    } else if (argument == "--precision") {
      options.precision = parse_dtype(value()).value_or(f32);
    } else if (argument == "--export") {
      options.exported = value();
    } else if (argument == "--cpu") {
      options.cpu = value();
    } else if (argument == "--mesh") {
      options.mesh = value();
    } else if (argument == "--split") {
      options.splits = value();
    } else if (argument == "--mpi") {
      options.mpi = value();
    } else if (argument == "--states") {
      options.parts.states = value();
    } else if (argument == "--parameters") {
      options.parts.parameters = value();
    } else if (argument == "--serve") {
      options.serve = true;
    } else {
      options.names.push_back(argument);
    }
  }
  if (options.names.empty()) options.names = step_names();
  return options;
}

/// Returns a field of /proc/self/status in bytes, such as VmHWM, the peak resident memory.
double status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return 1024 * std::atof(line.c_str() + field.size() + 1);
  return 0;
}

/// Returns a run whose launches have the median of their times, which removes pauses caused by the system.
TracedRun median_run(const std::vector<TracedRun>& runs) {
  TracedRun result = runs.at(0);
  for (std::size_t i = 0; i < result.launches.size(); ++i) {
    std::vector<double> seconds;
    for (const TracedRun& run : runs) seconds.push_back(run.launches.at(i).seconds);
    std::sort(seconds.begin(), seconds.end());
    result.seconds += result.launches[i].seconds = seconds[seconds.size() / 2];
  }
  return result;
}

/// Resets VmHWM.
void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Starts this process's rank of the mesh; null without a mesh.
std::shared_ptr<Ranks> start_ranks(const Options& options) {
  if (options.mesh.empty()) return nullptr;
  return std::make_shared<Ranks>(mpi_processes({.plugin = options.mpi}), shard::Mesh::parse(options.mesh));
}

class Step {
 public:
  Step(const std::string& name, const Options& options)
      : options_(options),
        ranks_(start_ranks(options)),
        case_(make_step_case(name)),
        step_(sized(case_.trains ? training_step(case_.forward, "loss", AdamW{.lr = 1e-3},
                                                 {.clip_norm = options.clip,
                                                  .report_norm = options.norm,
                                                  .precision = options.precision})
                                 : case_.forward)),
        executable_(compiled(step_, {.on = options.chunk_rows == 0})),
        other_(other(step_)) {
    if (ranks_)
      for (auto& [input, value] : case_.inputs) value = own_part(*ranks_, value, placement(input), input);
    if (options.exported.empty()) return;
    std::vector<TensorView> tensors;
    for (const ProgramBuffer& buffer : program_of(executable_).buffers)
      if (executable_.parameters().contains(buffer.name) && !buffer.name.starts_with("optimizer."))
        tensors.push_back(view_of(buffer.name, executable_.parameters().get(buffer.name)));
    for (const auto& [input, value] : case_.inputs) tensors.push_back(view_of("input." + input, value));
    write_safetensors(options.exported, tensors);
  }

  const std::shared_ptr<Ranks>& ranks() const { return ranks_; }
  const StepCase& model() const { return case_; }
  const CompileSummary& summary() const { return executable_.summary(); }
  /// With ranks: JSON fields with the best time to shard the step, its nodes, and the predicted bytes to send.
  std::string division() const {
    const auto divided = [&] { return shard::shard(step_, ranks_->mesh(), splits(), parts()); };
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto start = Clock::now();
      (void)divided();
      best = std::min(best, seconds_since(start));
    }
    const shard::Sharded sharded = divided();
    const SentBytes sent = shard::bytes_sent(sharded, ranks_->rank(), dims());
    return fmt::format(",\"shard\":{},\"nodes\":{},\"predicted\":{}", best, sharded.graph.size(), sent.tensors);
  }
  DimBindings dims() const { return executable_.bind(case_.inputs); }
  MemoryPlan plan() const { return memory_plan_of(executable_, dims()); }

  /// The work that bounds the step, in FLOPs or bytes read, and the machine's rate for it, probed for `seconds`.
  bool streams() const { return case_.bytes > 0; }
  double work() const { return streams() ? case_.bytes : case_.flops; }
  double probe(double seconds) const {
    return (streams() ? measure_read_bandwidth(options_.threads, bandwidth_probe_bytes(), seconds)
                      : measure_fma_peak(options_.threads, seconds))
        .best;
  }

  /// The seconds of one step, and its loss.
  std::pair<double, double> run() { return run(executable_); }
  /// The same step compiled with other options, to alternate with.
  bool has_other() const { return other_.has_value(); }
  std::pair<double, double> run_other() { return run(other_.value()); }
  const Executable& other() const { return other_.value(); }

  std::string profile() {
    Trace trace{.program = program_of(executable_),
                .plan = plan(),
                .dims = executable_.bind(case_.inputs),
                .machine = {measure_fma_peak(options_.threads, 0.1).best,
                            measure_read_bandwidth(options_.threads, bandwidth_probe_bytes(), 0.1).best},
                .runs = {}};
    for (int i = 0; i < 5; ++i) executable_.run_traced(case_.inputs, trace.runs.emplace_back().launches);
    trace.runs = {median_run(trace.runs)};
    return top_table(trace, options_.top);
  }

 private:
  ir::Graph sized(const ir::Graph& step) const {
    if (!options_.known_sizes) return step;
    std::map<std::string, ir::ArgumentShape> shapes;
    for (const ir::ValueId id : step.arguments()) {
      const ir::Node& node = step[id];
      const auto given = case_.inputs.find(node.name);
      shapes[node.name] = {node.type.dtype,
                           given == case_.inputs.end() ? node.type.shape.evaluate({}) : given->second.shape()};
    }
    return ir::with_sizes(step, ir::bind_dims(step, shapes));
  }

  Executable compiled(const ir::Graph& step, const RowChunks& chunks, std::optional<TuneOptions> tune = {}) const {
    Executable executable = compile(step, {.target = Target::named(options_.cpu),
                                           .threads = options_.threads,
                                           .lower = {.chunks = chunks},
                                           .ranks = ranks_,
                                           .split = splits(),
                                           .parts = parts(),
                                           .tune = std::move(tune)});
    if (!ranks_) {
      executable.parameters().set(initial_values(step, case_.initializers, 1));
      return executable;
    }
    for (const ProgramBuffer& buffer : program_of(executable).buffers)
      if (buffer.kind == ProgramBuffer::Kind::state)
        executable.parameters().set(buffer.name,
                                    own_part(*ranks_, initial_value(step, buffer.name, case_.initializers, 1),
                                             executable.placements().at(buffer.name), buffer.name));
    return executable;
  }

  std::pair<double, double> run(Executable& executable) const {
    const auto start = Clock::now();
    const double loss = executable.run(case_.inputs).at("loss").get(0);
    return {seconds_since(start), loss};
  }

  std::optional<Executable> other(const ir::Graph& step) const {
    if (options_.chunk_rows > 0) return compiled(step, {.least_rows = options_.chunk_rows});
    if (options_.tune <= 0) return std::nullopt;
    const TuneOptions tune{.dims = executable_.bind(case_.inputs), .seconds = options_.tune};
    Executable executable = compiled(step, {}, tune);
    fmt::print("{}", to_string(executable.summary().tuned.value()));
    return executable;
  }

  std::vector<shard::Split> splits() const {
    return ranks_ ? shard::parse_splits(options_.splits) : std::vector<shard::Split>();
  }
  shard::ShardOptions parts() const { return ranks_ ? options_.parts : shard::ShardOptions(); }
  const shard::Placement& placement(const std::string& argument) const {
    return executable_.placements().at(argument);
  }

  Options options_;
  std::shared_ptr<Ranks> ranks_;
  StepCase case_;
  ir::Graph step_;
  Executable executable_;
  std::optional<Executable> other_;
};

void measure(const std::string& name, const Options& options) {
  Step step(name, options);
  const CompileSummary& c = step.summary();
  fmt::print("{}: {}\n", name, step.model().what);
  fmt::print("{} nodes, {} kernels in {} launches; passes {:.2f} s, lowering {:.2f} s, code {:.2f} s\n", c.nodes,
             c.kernels, c.launches, c.pass_seconds, c.lower_seconds, c.codegen_seconds);
  const MemoryPlan plan = step.plan();
  fmt::print("arena {} ({:.3f} of the largest live set), arguments {}\n", format_bytes(plan.arena_bytes),
             static_cast<double>(plan.arena_bytes) / static_cast<double>(std::max<std::int64_t>(plan.lower_bound, 1)),
             format_bytes(plan.argument_bytes));
  std::vector<double> seconds, peaks, others;
  double loss = 0;
  for (int i = 0; i < options.steps + 2; ++i) {
    const double peak = step.probe(0.02);
    const auto both = [&] {
      if (!step.has_other()) return std::pair{step.run(), std::pair<double, double>{}};
      // The order alternates, so that periodic disturbances do not always hit the same one.
      const auto first = i % 2 == 0 ? step.run() : step.run_other(),
                 second = i % 2 == 0 ? step.run_other() : step.run();
      return i % 2 == 0 ? std::pair{first, second} : std::pair{second, first};
    }();
    const auto [took, now] = both.first;
    const auto [other_took, other_loss] = both.second;
    if (step.has_other() && other_loss != now)
      fmt::print("the losses differ: {} and, compiled in the other way, {}\n", now, other_loss);
    loss = now;
    if (i < 2) continue;
    seconds.push_back(took);
    others.push_back(other_took);
    peaks.push_back(peak);
  }
  const double typical = median(seconds), peak = median(peaks);
  fmt::print("{:.1f} ms a step, {:.0f} tokens/s, {:.1f}% of the {} of {:.0f} {} on {} threads, loss {:.5f}\n",
             1e3 * typical, static_cast<double>(step.model().tokens) / typical, 100 * step.work() / typical / peak,
             step.streams() ? "read bandwidth" : "FMA peak", peak * 1e-9, step.streams() ? "GB/s" : "GFLOP/s",
             options.threads, loss);
  if (step.has_other())
    fmt::print(
        "{}, in turn with the default: {:.1f} ms; best {:.1f} and {:.1f} ms; arena {}\n",
        options.chunk_rows > 0 ? fmt::format("products in chunks of {} rows", options.chunk_rows) : "tiles tuned",
        1e3 * median(others), 1e3 * *std::min_element(others.begin(), others.end()),
        1e3 * *std::min_element(seconds.begin(), seconds.end()),
        format_bytes(memory_plan_of(step.other(), step.dims()).arena_bytes));
  if (options.top > 0) fmt::print("{}", step.profile());
}

std::string ready_line(const Step& step) {
  const StepCase& model = step.model();
  const CompileSummary& c = step.summary();
  const MemoryPlan plan = step.plan();
  std::string sizes;
  for (const auto& [key, value] : model.sizes)
    sizes += fmt::format("{}\"{}\":{}", sizes.empty() ? "" : ",", key, value);
  return fmt::format(
      "{{\"what\":\"{}\",\"sizes\":{{{}}},\"tokens\":{},\"streams\":{},\"work\":{},\"compile\":{},\"kernels\":{},"
      "\"launches\":{},"
      "\"arena\":{},\"lower_bound\":{},\"arguments\":{}{}}}",
      model.what, sizes, model.tokens, step.streams(), step.work(),
      c.pass_seconds + c.lower_seconds + c.codegen_seconds, c.kernels, c.launches, plan.arena_bytes, plan.lower_bound,
      plan.argument_bytes, step.ranks() ? step.division() : "");
}

/// Returns the next command, which rank 0 reads for all processes; "" at the end of the input.
std::string next_command(const std::shared_ptr<Ranks>& ranks) {
  std::string line;
  if (!ranks || ranks->rank() == 0) std::getline(std::cin, line);
  return ranks ? ranks->gather(line).front() : line;
}

/// Returns the communication volume so far.
std::string exchanged(const Ranks& ranks) {
  const SentBytes sent = ranks.sent();
  const SummedBytes summed = ranks.summed();
  return fmt::format(",\"sent\":{},\"scalars\":{},\"summed\":{},\"early\":{}", sent.tensors, sent.scalars, summed.all,
                     summed.early);
}

/// Serves "run N", "peak", "forget" and "profile", which prints its table to stderr, until the end of the input.
void serve(const std::string& name, const Options& options) {
  Step step(name, options);
  const std::shared_ptr<Ranks>& ranks = step.ranks();
  const auto answer = [&](const std::string& line) {
    if (!ranks || ranks->rank() == 0) std::cout << line << std::endl;
  };
  answer(ready_line(step));
  for (std::string line; !(line = next_command(ranks)).empty();) {
    std::istringstream words(line);
    std::string verb;
    int count = 0;
    words >> verb >> count;
    if (verb == "peak") {
      answer(fmt::format("{{\"peak\":{}}}", step.probe(0.05)));
    } else if (verb == "run") {
      std::vector<double> seconds, losses;
      for (int i = 0; i < count; ++i) {
        const auto [took, loss] = step.run();
        seconds.push_back(took);
        losses.push_back(loss);
      }
      answer(fmt::format("{{\"seconds\":[{}],\"losses\":[{}],\"memory\":{}{}}}", fmt::join(seconds, ","),
                         fmt::join(losses, ","), status_bytes("VmHWM"), ranks ? exchanged(*ranks) : ""));
    } else if (verb == "profile") {
      const std::string table = step.profile();
      if (!ranks || ranks->rank() == 0) fmt::print(stderr, "{}", table);
      answer("{}");
    } else if (verb == "forget") {
      forget_peak_memory();
      answer("{}");
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.serve) {
    serve(options.names.front(), options);
    return 0;
  }
  if (!options.mesh.empty()) {
    fmt::print(stderr, "--mesh needs --serve\n");
    return 1;
  }
  for (const std::string& name : options.names) measure(name, options);
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
