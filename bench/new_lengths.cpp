// Measures the cost of a sequence length that was not seen before, in microseconds: medians.
//   bench_new_lengths [--rounds N] [--threads N]
// plan: time of the memory plan of GPT-2 124M, for increasing lengths. Plans that need a search for a placement are
// listed separately: the first plan, and some later ones.
// bind: additional time of a run at a new length (dims, sizes, launches, and the plan without reserved memory), as
// the difference to another run at the same length. Uses 12 narrow GPT-2 layers, so that compute time does not hide
// it. "room" means that the length is within a reserved maximum.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "frontend/initial_values.h"
#include "frontend/models/loss_graph.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/ops/ops.h"
#include "frontend/train/training.h"
#include "passes/compile/compilation.h"
#include "passes/memory/memory_planner.h"
#include "runtime/backend/backend.h"
#include "runtime/compile.h"
#include "runtime/run/dim_table.h"

namespace {

using namespace lathe;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t longest = 1024;

template <class F>
double microseconds(const F& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

models::GptConfig gpt(std::int64_t width) {
  models::GptConfig config = models::gpt2_config(12, width, 12);
  if (width < 768) config.vocab = Dim("vocab", 64);
  return config;
}

models::LossGraph loss_of(std::int64_t width) { return models::loss_graph(gpt(width)); }
ir::Graph step_of(std::int64_t width) { return training_step(loss_of(width).graph, "loss", AdamW{.lr = 1e-3}); }

/// Decodes one token through 12 attention layers, over the cached keys and values.
ir::Graph decode_of(std::int64_t width) {
  const Dim B{"B", 1}, h{"h", 12}, d{"d", width / 12}, hidden{"hidden", width};
  Graph g("decode");
  Tensor x = g.input("x", f32, {B, 1, hidden});
  nn::KeyValueCache cache;
  cache.positions = g.input("positions", i64, {B, 1});
  const nn::AttentionContext context(Dim(1), cache);
  for (int i = 0; i < 12; ++i) {
    const auto scope = g.scope(fmt::format("h.{}", i));
    const auto heads = [&](const char* name) {
      return linear(x, g.parameter(name, f32, {hidden, hidden})).view({B, 1, h, d}).transpose(1, 2);
    };
    const Tensor y = context.attend(heads("q"), heads("k"), heads("v"), {.scale = 0.125});  // [B, h, 1, d]
    x = x + linear(y.transpose(1, 2).reshape({B, 1, hidden}), g.parameter("o", f32, {hidden, hidden}));
  }
  g.output("y", x);
  return g.finish();
}

void report_plans(const std::string& name, const ir::Graph& graph, int rounds,
                  const std::function<DimBindings(std::int64_t)>& dims_of) {
  const Program program = compile_graph(graph, machine_of(Target::host())).program;
  DimTable table;
  std::vector<std::size_t> at;
  for (const ProgramBuffer& buffer : program.buffers) at.push_back(table.add(buffer.elements));
  std::vector<double> plans, searches;
  std::vector<std::int64_t> sizes, elements(at.size());
  for (int round = 0; round < rounds; ++round) {
    MemoryPlanner planner(program, 2);
    for (std::int64_t length = 8; length < longest; length += 1 + length / 16) {
      const int before = planner.searches();
      const double taken = microseconds([&] {
        table.evaluate(dims_of(length), sizes);
        for (std::size_t i = 0; i < at.size(); ++i) elements[i] = sizes[at[i]];
        (void)planner.plan(elements);
      });
      (planner.searches() == before ? plans : searches).push_back(taken);
    }
  }
  fmt::print("{:<22} {:>8} {:>8} {:>12.1f} {:>12.1f} {:>14.1f}%\n", name, program.launches.size(),
             program.buffers.size(), median(plans), median(searches),
             100.0 * static_cast<double>(searches.size()) / static_cast<double>(plans.size() + searches.size()));
}

/// Runs twice at each length and prints the difference.
void report_binds(const std::string& name, std::vector<std::int64_t> lengths,
                  const std::function<void(std::int64_t)>& run) {
  std::vector<double> other, again;
  for (const std::int64_t length : lengths) {
    other.push_back(microseconds([&] { run(length); }));
    again.push_back(microseconds([&] { run(length); }));
  }
  std::vector<double> differences;
  for (std::size_t i = 1; i < other.size(); ++i) differences.push_back(other[i] - again[i]);
  fmt::print("{:<22} {:>12.1f} {:>14.1f}\n", name, median(differences), median(again));
}

/// Measures the loss or a training step over tokens [1, T + 1].
void report_model(const std::string& name, const ir::Graph& graph, int threads, int rounds, std::int64_t reserve) {
  const models::LossGraph model = loss_of(24);
  Executable executable = compile(graph, {.parameters = Parameters(initial_values(graph, model.initializers, 1)),
                                          .reserve = reserve > 0 ? DimBindings{{"T", reserve}} : DimBindings{},
                                          .threads = threads});
  const std::vector<std::int64_t> tokens(longest + 1, 1);
  std::vector<float> scalars(graph.outputs.size());
  InputRefs inputs{{"tokens", {i64, {1, 2}, tokens.data()}}};
  OutputRefs outputs;
  for (std::size_t i = 0; i < scalars.size(); ++i)
    outputs.emplace(graph.outputs[i].name, TensorRef{f32, {}, &scalars[i]});
  const auto run = [&](std::int64_t length) {
    inputs.find("tokens")->second.shape[1] = length + 1;
    executable.run(inputs, outputs);
  };
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = 4; length < 64; ++length) lengths.push_back(length);
  std::mt19937 random(1);
  run(4);
  if (reserve == 0) return report_binds(name + ", longer ones", lengths, run);
  std::vector<std::int64_t> shuffled;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(lengths.begin(), lengths.end(), random);
    shuffled.insert(shuffled.end(), lengths.begin(), lengths.end());
  }
  report_binds(name + ", room", shuffled, run);
}

void report_decode(int threads) {
  const ir::Graph graph = decode_of(24);
  Parameters store;
  for (const ir::ValueId id : graph.arguments())
    if (const ir::Node& node = graph[id]; node.op->name.value != "input")
      store.set(node.name, HostTensor(f32, node.type.shape.evaluate({{"capacity", longest}})));
  Executable executable = compile(graph, {.parameters = store, .threads = threads});
  const HostTensor x(f32, {1, 1, 24});
  HostTensor positions(i64, {1, 1}), y(f32, {1, 1, 24});
  const InputRefs inputs{{"x", x}, {"positions", positions}};
  const OutputRefs outputs{{"y", y}};
  DimBindings dims{{"length", 1}};
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = 1; length <= longest; ++length) lengths.push_back(length);
  report_binds("decode, each longer", lengths, [&](std::int64_t length) {
    positions.set_int(0, length - 1);
    dims.find("length")->second = length;
    executable.run(inputs, outputs, dims);
  });
}

}  // namespace

int main(int argc, char** argv) try {
  int rounds = 5, threads = 2;
  for (int i = 1; i + 1 < argc; i += 2)
    (std::string(argv[i]) == "--rounds" ? rounds : threads) = std::max(1, std::atoi(argv[i + 1]));
  fmt::print("{:<22} {:>8} {:>8} {:>12} {:>12} {:>15}\n", "plan", "launches", "buffers", "us", "search, us",
             "searched");
  const auto of_text = [](std::int64_t length) { return DimBindings{{"B", 1}, {"T", length}}; };
  report_plans("gpt2 loss", loss_of(768).graph, rounds, of_text);
  report_plans("gpt2 training step", step_of(768), rounds, of_text);
  report_plans("gpt2 decode", decode_of(768), rounds,
               [](std::int64_t length) { return DimBindings{{"capacity", longest}, {"length", length}}; });
  fmt::print("\n{:<22} {:>12} {:>14}\n", "bind, 12 narrow layers", "us", "a run again");
  for (const std::int64_t reserve : {std::int64_t{0}, longest}) {
    report_model("loss", loss_of(24).graph, threads, rounds, reserve);
    report_model("training step", step_of(24), threads, rounds, reserve);
  }
  report_decode(threads);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
