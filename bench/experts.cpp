// Forward and backward of a mixture of experts, sparse and dense, compared with a dense feed-forward that has as many
// hidden units as the chosen experts of a token together. The three alternate.
//   bench_experts [THREADS [SECONDS A ROW]]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/initial_values.h"
#include "frontend/nn/experts.h"
#include "runtime/compile.h"

namespace {

using namespace lathe;

struct Row {
  std::int64_t tokens, d, d_ff, experts, chosen;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The gradients of all parameters and of x are stored in states, so that a run allocates nothing.
template <class Model>
Executable compiled(const Row& row, const Model& model, const nn::Module& module, int threads) {
  Graph g("experts");
  Tensors states;
  const auto state = [&](const std::string& name, const Shape& shape, const Init& init) {
    states.set(name, initial_value(init, name, f32, shape.evaluate({}), 1));
    return g.state(name, f32, shape);
  };
  const Shape shape{Dim(row.tokens), Dim(row.d)};
  const Tensor x = state("x", shape, Init::normal({.deviation = 1})),
               dy = state("dy", shape, Init::normal({.deviation = 1}));
  std::vector<Tensor> wanted = {x};
  for (const nn::Parameter& parameter : module.parameters()) wanted.push_back(parameter.in(g));
  const std::vector<Tensor> gradients = grad((model(x) * dy).sum(), wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    g.update(state(fmt::format("gradient.{}", i), gradients[i].shape(), Init::zeros()), gradients[i]);
  Executable executable = compile(g.finish(), {.threads = threads, .cache = nullptr});
  for (auto& [name, value] : module.initial_values(1)) states.emplace(name, std::move(value));
  executable.parameters().set(states);
  executable.run({});
  return executable;
}

void measure(const Row& row, int threads, double seconds) {
  const Dim d(row.d);
  const nn::GatedFeedForwardOptions layer{};
  const nn::Experts experts(nn::Module(), "moe", d, Dim(row.d_ff),
                            {.count = row.experts, .chosen = row.chosen, .expert = layer});
  const nn::GatedFeedForward active(nn::Module(), "active", d, Dim(row.d_ff * row.chosen), layer);
  std::vector<Executable> programs;
  programs.push_back(compiled(row, active, active, threads));
  for (const nn::Dispatch dispatch : {nn::Dispatch::sparse, nn::Dispatch::dense})
    programs.push_back(compiled(row, [&](const Tensor& x) { return experts(x, dispatch); }, experts, threads));
  std::vector<std::vector<double>> times(programs.size());
  const double start = now();
  do {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const double before = now();
      programs[i].run({});
      times[i].push_back(now() - before);
    }
  } while (now() - start < seconds || times[0].size() < 5);
  std::vector<double> medians;
  for (auto& t : times) {
    std::sort(t.begin(), t.end());
    medians.push_back(t[t.size() / 2]);
  }
  fmt::print("{:>6} {:>5} {:>5} {:>4} of {:<3} {:>9.2f} {:>9.2f} {:>9.2f} {:>10.2f} {:>10.2f}\n", row.tokens, row.d,
             row.d_ff, row.chosen, row.experts, medians[0] * 1e3, medians[1] * 1e3, medians[2] * 1e3,
             medians[1] / medians[0], medians[2] / medians[0]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 5;
    fmt::print("milliseconds, forward and backward, {} threads\n", threads);
    fmt::print("tokens     d  d_ff   experts    active    sparse     dense  sparse/act  dense/act\n");
    for (const Row& row : {Row{2048, 512, 896, 8, 2}, Row{1024, 1024, 1792, 8, 2}, Row{4096, 512, 448, 32, 4}})
      measure(row, threads, seconds);
    return 0;
  } catch (const UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
