// Measures how the time of every stage, from building a graph to running it, grows with the size of the graph.
//   bench_scaling [--rounds N] [--most SIZE] [--text FOLDER] [gpt2 unrolled chain ...]
// Prints CPU time of one thread in milliseconds, and wall time for a compilation with all threads. Values are the
// minimum over all rounds, with an empty cache. The last column is the ratio of the largest to the smallest size.
// Skips sizes above --most. --text writes the result of each compilation.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>

#include "bench/cases/scaling_cases.h"
#include "bench/program_text.h"
#include "codegen/llvm/jit.h"
#include "ir/tensor/verifier.h"
#include "passes/compile/compilation.h"
#include "passes/fusion/fusion.h"
#include "runtime/backend/backend.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"

namespace {

using namespace lathe;

double cpu_milliseconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// A table with a row per name, in order of first use, and a column per size.
class Table {
 public:
  explicit Table(std::vector<int> sizes) : sizes_(std::move(sizes)) {}

  void add(const std::string& row, std::size_t size, double value) {
    if (!rows_.contains(row)) {
      order_.push_back(row);
      rows_[row].resize(sizes_.size(), -1);
    }
    double& cell = rows_[row][size];
    cell = cell < 0 ? value : std::min(cell, value);
  }
  template <class F>
  auto time(const std::string& row, std::size_t size, F&& work) {
    const double start = cpu_milliseconds();
    auto result = work();
    add(row, size, cpu_milliseconds() - start);
    return result;
  }
  void print(std::string_view name, std::string_view what) const {
    fmt::print("{:<34}", fmt::format("{}, {}", name, what));
    for (const int size : sizes_) fmt::print("{:>10}", size);
    fmt::print("{:>8}\n", "ratio");
    for (const std::string& row : order_) {
      const std::vector<double>& cells = rows_.at(row);
      fmt::print("  {:<32}", row);
      for (const double cell : cells) fmt::print("{:>10.4g}", cell);
      fmt::print("{:>8.1f}\n", cells.front() > 0 ? cells.back() / cells.front() : 0.0);
    }
    fmt::print("\n");
  }

 private:
  std::vector<int> sizes_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> rows_;
};

/// Runs the passes, each verified as in compile(). Times them together and separately.
Compilation run_passes(Table& table, std::size_t size, const ir::Graph& given) {
  Compilation now = begin_compilation(given, machine_of(Target::host()));
  table.time("passes", size, [&] {
    run_through(now, Stage::Part::target);
    return 0;
  });
  for (const PassRun& run : now.runs) table.add("  " + run.name, size, run.seconds * 1e3);
  return now;
}

/// Sets all states and parameters to zeros.
void fill(const Executable& exe, const DimBindings& dims) {
  for (const Program::Slot& slot : program_of(exe).states) {
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : slot.shape) sizes.push_back(dim.evaluate(dims));
    exe.parameters().set(slot.name, HostTensor(slot.dtype, sizes));
  }
}

void measure_run(Table& table, std::size_t size, const ir::Graph& graph, const Tensors& inputs) {
  Executable exe = table.time("compile", size, [&] { return compile(graph, {.threads = 1}); });
  fill(exe, {});
  table.time("first run", size, [&] { return exe.run(inputs); });
  for (int i = 0; i < 5; ++i) table.time("run", size, [&] { return exe.run(inputs); });
}

void measure(const bench::ScalingCase& c, std::size_t s, Table& table, const std::filesystem::path& text) {
  const int size = c.sizes[s];
  const ir::Graph graph = table.time("build", s, [&] { return c.graph(size); });
  Compilation now = run_passes(table, s, graph);
  const ir::Graph& passed = now.graph;
  table.time("  verify once", s, [&] { return ir::find_defect(passed); });
  const Program program = table.time("lower", s, [&] {
    run_until(now, "collectives");
    return now.program;
  });
  table.time("  plan_fusion", s, [&] { return plan_fusion(passed); });
  table.time("code", s, [&] { return codegen::Jit({.threads = 1}).compile(program.kernels); });
  const auto start = std::chrono::steady_clock::now();
  (void)compile(graph);
  const std::chrono::duration<double, std::milli> passed_time = std::chrono::steady_clock::now() - start;
  table.add("compiled, by all threads", s, passed_time.count());
  if (c.inputs) measure_run(table, s, graph, c.inputs(size));
  table.add("nodes", s, passed.size());
  table.add("launches", s, static_cast<double>(program.launches.size()));
  table.add("kernels", s, static_cast<double>(program.kernels.size()));
  if (!text.empty()) bench::write_text(text / fmt::format("{}_{}.txt", c.name, size), program);
}

}  // namespace

int main(int argc, char** argv) try {
  int rounds = 1, most = 1 << 30;
  std::filesystem::path text;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--most" && i + 1 < argc) {
      most = std::atoi(argv[++i]);
    } else if (argument == "--text" && i + 1 < argc) {
      text = argv[++i];
    } else {
      wanted.push_back(argument);
    }
  }
  for (bench::ScalingCase c : bench::scaling_cases()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), c.name) == wanted.end()) continue;
    std::erase_if(c.sizes, [&](int size) { return size > most; });
    if (c.sizes.empty()) continue;
    Table table(c.sizes);
    for (int round = 0; round < rounds; ++round)
      for (std::size_t s = 0; s < c.sizes.size(); ++s) measure(c, s, table, text);
    table.print(c.name, c.what);
  }
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
