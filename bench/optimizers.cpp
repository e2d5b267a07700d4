// The time of a training step with Muon for the hidden matrices, compared with AdamW for all parameters.
//   bench_optimizers [NAME ...] [--steps N] [--threads N] [--apart]
// NAME as for bench_training_step; default gpt2. The steps of both optimizers alternate. With --apart, only one of
// the two programs has memory at a time. The work of the iterations that orthogonalize a matrix depends on its size
// alone, that of the model also on the number of tokens: their quotient says what the ratio of the times can be at
// best.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bench/cases/step_cases.h"
#include "bench/memory_floor.h"
#include "frontend/train/training.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "runtime/compile.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/seconds.h"

namespace {

using namespace lathe;
using namespace lathe::bench;

/// Selects matrices other than the embeddings of a GPT.
ParameterFilter hidden_matrices() {
  return [inner = names_without({"wte", "wpe"})](const ir::Node& p) { return p.type.rank() == 2 && inner(p); };
}

/// FLOPs of the iterations for all hidden matrices. For r rows and c columns, r <= c: x x^T and the product with x
/// take 2 r^2 c each, the square of x x^T 2 r^3.
double iteration_flops(const ir::Graph& graph, int iterations) {
  double flops = 0;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value != "parameter" || !hidden_matrices()(node)) continue;
    const std::vector<std::int64_t> sizes = node.type.shape.evaluate({});
    const auto [rows, columns] = std::minmax(sizes[0], sizes[1]);
    const double r = static_cast<double>(rows), c = static_cast<double>(columns);
    flops += iterations * (4 * r * r * c + 2 * r * r * r);
  }
  return flops;
}

class TimedStep {
 public:
  TimedStep(const StepCase& model, int threads, const Optimizer& optimizer, const TrainingOptions& options)
      : model_(model), executable_(compiled(training_step(model.forward, "loss", optimizer, options), threads)) {}

  double seconds() {
    const auto start = std::chrono::steady_clock::now();
    executable_.run(model_.inputs);
    return seconds_since(start);
  }

 private:
  Executable compiled(const ir::Graph& step, int threads) const {
    Executable executable = compile(step, {.threads = threads});
    executable.parameters().set(initial_values(step, model_.initializers, 1));
    return executable;
  }

  const StepCase& model_;
  Executable executable_;
};

void measure(const std::string& name, int steps, int threads, bool apart) {
  const StepCase model = make_step_case(name);
  const Muon muon{.lr = 1e-3, .scale = Muon::Scale::like_adamw};
  const TrainingOptions plain{.report_norm = false};
  TrainingOptions grouped = plain;
  grouped.groups = {{.name = "matrices", .parameters = hidden_matrices(), .optimizer = muon}};
  std::optional<TimedStep> adamw, with_muon;
  std::vector<double> first, second;
  const auto time = [&](std::optional<TimedStep>& step, const TrainingOptions& options, std::vector<double>& times) {
    if (!step) {
      step.emplace(model, threads, AdamW{.lr = 1e-3}, options);
      (void)step->seconds();  // also touches all memory
    }
    times.push_back(step->seconds());
    if (apart) step.reset();
  };
  for (int i = 0; i < steps; ++i) {
    time(adamw, plain, first);
    time(with_muon, grouped, second);
  }
  const double a = median(first), b = median(second), extra = iteration_flops(model.forward, muon.iterations);
  fmt::print("{}: {}\n", name, model.what);
  fmt::print("AdamW {:.1f} ms, Muon {:.1f} ms: ratio {:.2f}\n", 1e3 * a, 1e3 * b, b / a);
  fmt::print("the model takes {:.1f} GFLOP, the iterations {:.1f}: at equal rates the ratio is {:.2f}\n",
             model.flops * 1e-9, extra * 1e-9, 1 + extra / model.flops);
  if (b > a) fmt::print("the iterations ran at {:.2f} of the step's rate\n", extra / (b - a) / (model.flops / a));
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> names;
  int steps = 5, threads = usable_cpus();
  bool apart = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::max(1, std::atoi(argv[++i])) : 1; };
    if (argument == "--steps") {
      steps = number();
    } else if (argument == "--threads") {
      threads = number();
    } else if (argument == "--apart") {
      apart = true;
    } else {
      names.push_back(argument);
    }
  }
  if (names.empty()) names = {"gpt2"};
  for (const std::string& name : names) measure(name, steps, threads, apart);
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
