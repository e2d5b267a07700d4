#include "tests/ranks/support.h"

#include <algorithm>
#include <mutex>
#include <random>

#include "frontend/dsl.h"
#include "frontend/models/gpt.h"
#include "frontend/step.h"
#include "passes/lowering/program.h"
#include "runtime/ranks/thread_communicator.h"
#include "runtime/ranks/whole_tensors.h"
#include "tests/support/distance.h"

namespace lathe::test {

ir::Graph small_step(DType dtype, double clip_norm) {
  Graph g{"gpt"};
  models::GptConfig config;
  config.vocab = Dim("vocab", 32);
  config.context = Dim("context", 8);
  config.d_model = Dim("d_model", 16);
  config.h = Dim("h", 4);
  config.layers = 2;
  config.dropout = 0.1;
  config.dtype = dtype;
  const models::Gpt model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  return training_step(g, model.loss(tokens), AdamW{.lr = 1e-3}, {.clip_norm = clip_norm});
}

HostTensor tokens_of(std::int64_t number, std::int64_t batch, std::int64_t length) {
  std::mt19937 generator(static_cast<unsigned>(number + 1));
  HostTensor tokens(i64, {batch, length + 1});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, static_cast<std::int64_t>(generator() % 32));
  return tokens;
}

namespace {

Tensors start(const ir::Graph& step) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> real(-0.3, 0.3);
  Tensors values;
  for (const ir::ValueId id : step.arguments()) {
    const ir::Node& node = step[id];
    if (node.name == "tokens") continue;
    HostTensor value(node.type.dtype, node.type.shape.evaluate({}));
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      if (node.name == "rng") value.set_int(i, i == 0 ? 7 : 0);
      if (is_float(node.type.dtype) && node.name.find("optimizer.") != 0) value.set(i, real(generator));
    }
    values.insert({node.name, std::move(value)});
  }
  return values;
}

}  // namespace

Trained train(const ir::Graph& step, int steps, const Division& division, const std::shared_ptr<Ranks>& ranks) {
  CompileOptions options{.threads = division.threads, .ranks = ranks};
  if (ranks) options.split = shard::parse_splits(division.splits);
  if (ranks) options.parts = division.parts;
  options.lower.bucket_bytes = division.bucket_bytes;
  Executable executable = compile(step, options);
  const auto placement = [&](const std::string& name) { return executable.placements().at(name); };
  for (const auto& [name, value] : start(step))
    executable.parameters().set(name, ranks ? own_part(*ranks, value, placement(name), name) : value);
  Trained trained;
  for (int i = 0; i < steps; ++i) {
    HostTensor tokens = tokens_of(i);
    if (ranks) tokens = own_part(*ranks, tokens, placement("tokens"), "tokens");
    trained.losses.push_back(executable.run({{"tokens", tokens}}).at("loss").get(0));
  }
  for (const auto& [name, value] : executable.parameters().values())
    trained.states[name] = ranks ? whole_of(*ranks, value, placement(name), name) : value;
  return trained;
}

Trained train(const ir::Graph& step, int steps) { return train(step, steps, {}, nullptr); }

Trained train_in_threads(const ir::Graph& step, int steps, const Division& division) {
  const shard::Mesh mesh = shard::Mesh::parse(division.mesh);
  Trained first;
  run_ranks(static_cast<int>(mesh.size()), [&](int rank, const MakeCommunicator& make) {
    const Trained own =
        train(step, steps, division, std::make_shared<Ranks>(make, mesh, RanksOptions{.patience = 60}));
    if (rank == 0) first = own;
  });
  return first;
}

double difference(const Trained& a, const Trained& b) {
  double worst = a.losses.size() == b.losses.size() && a.states.size() == b.states.size()
                     ? 0
                     : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.losses.size(), b.losses.size()); ++i)
    worst = std::max(worst, std::fabs(a.losses[i] - b.losses[i]));
  for (const auto& [name, value] : a.states) worst = std::max(worst, ir::test::distance(value, b.states.at(name)));
  return worst;
}

bool same_bits(const Trained& a, const Trained& b) {
  return a.losses == b.losses && a.states.size() == b.states.size() &&
         std::ranges::all_of(a.states,
                             [&](const auto& state) { return state.second.same_bits(b.states.at(state.first)); });
}

}  // namespace lathe::test
