// One training step of a GPT, timed launch by launch beside the machine's FMA peak.
//   bench_training_step [layers d_model heads vocab batch sequence [steps]]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "frontend/initialize.h"
#include "frontend/models/gpt.h"
#include "frontend/training.h"
#include "runtime/executable.h"
#include "runtime/machine/peak.h"

namespace {

using namespace lathe;

struct Setting {
  int layers = 6, d_model = 384, heads = 6, vocab = 65, batch = 4, sequence = 256, steps = 10;
};

Setting parse(int argc, char** argv) {
  Setting s;
  int* fields[] = {&s.layers, &s.d_model, &s.heads, &s.vocab, &s.batch, &s.sequence, &s.steps};
  for (int i = 1; i < argc && i <= 7; ++i) *fields[i - 1] = std::max(1, std::atoi(argv[i]));
  return s;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  double seconds = 0, gflops = 0;
  int launches = 0;
  std::int64_t tasks = 0;
};

/// The op a launch ends with, and the values of the kernel's dims.
std::string describe(const Launch& launch) {
  std::string dims;
  for (const Dim& dim : launch.dims) dims += (dims.empty() ? "" : ", ") + dim.to_string();
  const std::string name =
      launch.names.empty() ? std::string() : launch.names.back().substr(launch.names.back().find(' ') + 1);
  return fmt::format("{} ({}) [{}]", name, launch.loc.to_string(), dims);
}

void print_table(const Executable& exe, const std::vector<LaunchTime>& times, double peak) {
  std::map<std::string, Row> rows;
  double total = 0;
  for (const LaunchTime& t : times) {
    const Launch& launch = exe.program().launches[static_cast<std::size_t>(t.launch)];
    const auto& kernel = exe.program().kernels[static_cast<std::size_t>(launch.kernel)];
    Row& row = rows[fmt::format("{:<16} {}", kernel.name, describe(launch))];
    row.seconds += t.seconds;
    row.gflops += t.gflops;
    ++row.launches;
    row.tasks = t.tasks;
    total += t.seconds;
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::map<std::string, double> kinds;
  for (const auto& [name, row] : rows) kinds[name.substr(name.find('_') + 1, 8)] += row.seconds;
  for (const auto& [kind, seconds] : kinds) fmt::print("  {:<10} {:5.1f}%\n", kind, 100 * seconds / total);
  for (std::size_t i = 0; i < sorted.size() && i < 45; ++i) {
    const Row& row = sorted[i].second;
    fmt::print("  {:6.2f} ms {:5.1f}% {:5.1f}% of peak  x{:<3} {:>4} tasks  {}\n", 1e3 * row.seconds,
               100 * row.seconds / total, 100 * row.gflops * 1e9 / row.seconds / peak, row.launches, row.tasks,
               sorted[i].first);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Setting s = parse(argc, argv);
  Graph g("gpt");
  models::GptConfig config{.vocab = Dim("vocab", s.vocab),
                           .context = Dim("context", s.sequence),
                           .d_model = Dim("d_model", s.d_model),
                           .h = Dim("h", s.heads),
                           .layers = s.layers};
  models::Gpt gpt(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  g.output("loss", gpt.loss(tokens));
  const auto initializers = g.initializers();
  const ir::Graph step = training_step(g.finish(), "loss", AdamW{.lr = 1e-3}, {.clip_norm = 1.0});
  Executable exe = compile(step);
  const CompileSummary& c = exe.summary();
  fmt::print("{} ops, {} nodes, {} kernels in {} launches; passes {:.2f} s, lowering {:.2f} s, code {:.2f} s\n",
             c.ops, c.nodes, c.kernels, c.launches, c.pass_seconds, c.lower_seconds, c.codegen_seconds);
  exe.set_states(initial_values(step, initializers, 1));
  HostTensor batch(i64, {s.batch, s.sequence + 1});
  for (std::int64_t i = 0; i < batch.numel(); ++i) batch.set_int(i, i * 7 % s.vocab);
  const ir::Tensors inputs = {{"tokens", batch}};
  fmt::print("{}", describe(exe.memory_plan(exe.bind(inputs)), exe.program(), 6));

  std::int64_t parameters = 0;
  for (const auto& slot : exe.program().states)
    if (slot.is_parameter) parameters += exe.state(slot.name).numel();
  const double tokens_per_step = s.batch * s.sequence;
  // 6 N + 6 L C T a token, the causal half counted whole (PaLM, appendix B, with L C T for attention).
  const double flops =
      tokens_per_step * (6.0 * static_cast<double>(parameters) + 6.0 * s.layers * s.d_model * s.sequence);
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<double> seconds, peaks;
  std::vector<LaunchTime> times;
  for (int i = 0; i < s.steps + 2; ++i) {
    const double peak = measure_fma_peak(cpus, 0.02).best;
    times.clear();
    const double loss = exe.run_traced(inputs, times).at("loss").get(0);
    const double took = times.back().start + times.back().seconds;
    if (i >= 2) {
      seconds.push_back(took);
      peaks.push_back(peak);
    }
    fmt::print("step {} loss {:.4f} {:.1f} ms {:.1f}% of {:.0f} GFLOP/s\n", i, loss, 1e3 * took,
               100 * flops / took / peak, peak * 1e-9);
  }
  const double typical = median(seconds), peak = median(peaks);
  print_table(exe, times, peak);
  fmt::print(
      "{} parameters, {:.1f} ms a step, {:.0f} tokens/s, {:.1f}% of the FMA peak of {:.0f} GFLOP/s on {} threads\n",
      parameters, 1e3 * typical, tokens_per_step / typical, 100 * flops / typical / peak, peak * 1e-9, cpus);
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
