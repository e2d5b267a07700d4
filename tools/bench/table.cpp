#include "tools/bench/table.h"

#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "bench/cases/memory_cases.h"
#include "bench/cases/op_cases.h"
#include "bench/cases/step_cases.h"
#include "frontend/train/training.h"
#include "ir/support/error.h"
#include "passes/memory/memory_plan.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/executable_program.h"
#include "runtime/host/peak.h"
#include "tools/bench/measure.h"
#include "tools/inputs/files.h"

namespace lathe::bench {

namespace {

namespace fs = std::filesystem;

/// The target of a line: a share of the limit, a multiple of it, or a number of seconds.
struct Goal {
  enum class Kind { none, share, multiple, seconds } kind = Kind::none;
  double value = 0;

  std::string to_string() const {
    switch (kind) {
      case Kind::none: return "";
      case Kind::share: return fmt::format(">= {:.0f}%", 100 * value);
      case Kind::multiple: return fmt::format("<= {:.2f}x", value);
      case Kind::seconds: return fmt::format("<= {:.2f} s", value);
    }
    throw InternalError("a kind of goal out of range");
  }
  bool met_by(double reached) const {
    return kind == Kind::none || (kind == Kind::share ? reached >= value : reached <= value);
  }
};
Goal share(double value) { return value > 0 ? Goal{Goal::Kind::share, value} : Goal{}; }
Goal multiple(double value) { return {Goal::Kind::multiple, value}; }

void print_head(const std::string& group, const std::string& of) {
  tools::write_text("-", fmt::format("\n{:<44} {:>12} {:>16} {:>9}  goal\n", group, "time", "rate", of));
}

void print_line(const std::string& what, const std::string& time, const std::string& rate, double reached,
                const Goal& goal) {
  const std::string text = goal.kind == Goal::Kind::multiple  ? fmt::format("{:.2f}x", reached)
                           : goal.kind == Goal::Kind::seconds ? ""
                                                              : fmt::format("{:.1f}%", 100 * reached);
  tools::write_text("-", fmt::format("{:<44} {:>12} {:>16} {:>9}  {}{}\n", what, time, rate, text, goal.to_string(),
                                     goal.met_by(reached) ? "" : "  missed"));
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}
std::string rate_text(double flops) { return fmt::format("{:.1f} GFLOP/s", 1e-9 * flops); }

std::function<double()> peak_probe(int threads) {
  return [threads] { return measure_fma_peak(threads, 0.02).best; };
}

Measured measure_op(const OpCase& made, int threads) {
  Executable executable = compile(made.graph, {.threads = threads});
  executable.parameters().set(made.states);
  return measure(executable, {}, peak_probe(threads));
}

void products(const TableOptions& options) {
  print_head("products (m x n x k), packing included", "of peak");
  for (const ProductShape& shape : product_shapes()) {
    const OpCase made = product_case(shape);
    const std::string name = fmt::format("{} {}x{}x{}", shape.name, shape.m, shape.n, shape.k);
    const Measured one = measure_op(made, 1);
    print_line(name, time_text(one.seconds), rate_text(made.flops / one.seconds),
               made.flops / one.seconds / one.reference, share(shape.goal));
    if (options.threads < 2) continue;
    const Measured all = measure_op(made, options.threads);
    print_line(fmt::format("  {} threads, {:.2f} times as fast", options.threads, one.seconds / all.seconds),
               time_text(all.seconds), rate_text(made.flops / all.seconds), made.flops / all.seconds / all.reference,
               {});
  }
}

void attention(const TableOptions& options) {
  print_head("attention", "of peak");
  for (const AttentionShape& shape : attention_shapes(options.full)) {
    const OpCase forward = attention_case(shape, false), both = attention_case(shape, true);
    const Measured first = measure_op(forward, options.threads), all = measure_op(both, options.threads);
    const double flops = both.flops - forward.flops, seconds = std::max(all.seconds - first.seconds, 1e-9);
    print_line(shape.name() + " forward", time_text(first.seconds), rate_text(forward.flops / first.seconds),
               forward.flops / first.seconds / first.reference, share(0.7));
    print_line(shape.name() + " backward", time_text(seconds), rate_text(flops / seconds),
               flops / seconds / all.reference, share(0.6));
  }
}

/// Larger than all caches.
std::pair<std::int64_t, std::int64_t> memory_size(const std::string& op) {
  if (op.find("entropy") != std::string::npos) return {1024, 50257};
  if (op == "AdamW" || op == "global norm") return {50257, 768};
  if (op.find("gelu") != std::string::npos) return {16384, 3072};
  if (op == "softmax" || op == "softmax backward") return {32768, 1024};
  return {65536, 768};
}

void memory_bound(const TableOptions& options) {
  print_head("memory-bound (rows x columns)", "of floor");
  ThreadPool pool(options.threads);
  for (const MemoryOp& op : memory_ops()) {
    const auto [rows, columns] = memory_size(op.name);
    MemoryCase made = op.make(rows, columns);
    double bytes = 0;
    for (const Sweep& sweep : made.sweeps) bytes += sweep.bytes();
    Executable executable = compile(made.graph, {.threads = options.threads});
    executable.parameters().set(made.states);
    made.states.clear();
    const Measured m = measure(executable, made.inputs, [&] { return measure_floor(pool, made.sweeps, 3); });
    print_line(fmt::format("{} {}x{}", op.name, rows, columns), time_text(m.seconds),
               fmt::format("{:.1f} GB/s", 1e-9 * bytes / m.seconds), m.seconds / m.reference, multiple(1.15));
  }
}

struct TemporaryFolder {
  TemporaryFolder() {
    std::error_code failed;
    std::string name = (fs::temp_directory_path(failed) / "lathe-bench.XXXXXX").string();
    if (failed || ::mkdtemp(name.data()) == nullptr)
      throw UserError("cannot create a temporary folder", "bench_folder", "set TMPDIR to a writable folder");
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path path;
};

double compile_seconds(const CompileSummary& c) { return c.pass_seconds + c.lower_seconds + c.codegen_seconds; }

void steps(const TableOptions& options) {
  for (const std::string& name : step_names()) {
    const StepCase model = make_step_case(name);
    const ir::Graph step = training_step(model.forward, "loss", AdamW{});
    const TemporaryFolder folder;
    DiskCache cache(folder.path);
    Executable executable = compile(step, {.threads = options.threads, .cache = &cache});
    const CompileSummary cold = executable.summary();
    const CompileSummary warm = compile(step, {.threads = options.threads, .cache = &cache}).summary();
    executable.parameters().set(initial_values(step, model.initializers, 1));
    const MemoryPlan plan = memory_plan_of(executable, executable.bind(model.inputs));
    const Measured m = measure(executable, model.inputs, peak_probe(options.threads), 4);

    print_head(name + ": " + model.what, "of peak");
    print_line("training step", time_text(m.seconds),
               fmt::format("{:.0f} tokens/s", static_cast<double>(model.tokens) / m.seconds),
               model.flops / m.seconds / m.reference, share(0.65));
    const auto bound = static_cast<double>(std::max<std::int64_t>(plan.lower_bound, 1));
    print_line("arena " + format_bytes(plan.arena_bytes) + ", of its largest live set", "", "",
               static_cast<double>(plan.arena_bytes) / bound, multiple(1.03));
    tools::write_text("-", fmt::format("{:<44} {:>12}\n", "arguments and states", format_bytes(plan.argument_bytes)));
    const Goal::Kind seconds = Goal::Kind::seconds;
    print_line("compiled cold", time_text(compile_seconds(cold)), "", compile_seconds(cold), {seconds, 3});
    print_line("compiled from the cache", time_text(compile_seconds(warm)), "", compile_seconds(warm),
               {seconds, 0.15});
    tools::write_text("-",
                      fmt::format("{:<44} {:>12} in {} launches\n", "distinct kernels", cold.kernels, cold.launches));
  }
}

void decode(const TableOptions& options) {
  print_head("decode: one token of GPT-2 124M", "of reading");
  for (const std::int64_t context : {256, 1024}) {
    const StepCase made = gpt2_decode_case(context);
    Executable executable = compile(made.forward, {.threads = options.threads});
    executable.parameters().set(initial_values(made.forward, made.initializers, 1));
    const Measured m = measure(executable, made.inputs, [&] {
      return measure_read_bandwidth(options.threads, bandwidth_probe_bytes(), 0.05).best;
    });
    print_line(fmt::format("cache of {} tokens", context), time_text(m.seconds),
               fmt::format("{:.1f} GB/s", 1e-9 * made.bytes / m.seconds), made.bytes / m.seconds / m.reference,
               share(0.8));
  }
}

struct Group {
  const char* name;
  void (*print)(const TableOptions&);
};
constexpr Group groups[] = {{"products", products},
                            {"attention", attention},
                            {"memory-bound", memory_bound},
                            {"steps", steps},
                            {"decode", decode}};

}  // namespace

const std::vector<std::string>& table_groups() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Group& group : groups) all.push_back(group.name);
    return all;
  }();
  return names;
}

void print_table(const TableOptions& options) {
  for (const Group& group : groups)
    if (options.groups.empty() ||
        std::find(options.groups.begin(), options.groups.end(), group.name) != options.groups.end())
      group.print(options);
}

}  // namespace lathe::bench
