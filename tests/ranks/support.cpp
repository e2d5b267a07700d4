#include "tests/ranks/support.h"

#include <algorithm>
#include <random>

#include "passes/program/program.h"
#include "runtime/ranks/thread_communicator.h"
#include "runtime/ranks/whole_tensors.h"
#include "tests/support/graphs/divisible_steps.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/once_store.h"
#include "tests/support/tensors/distance.h"

namespace lathe::test {

ir::Graph small_step(DType dtype, double clip_norm, int layers) {
  return gpt_step(divisible_gpt(layers, 0.1, dtype), AdamW{.lr = 1e-3}, {.clip_norm = clip_norm});
}

ir::Graph small_llama_step(DType dtype, int layers) {
  return llama_step(divisible_llama(layers, dtype), AdamW{.lr = 1e-3}, {.clip_norm = 0.5});
}

HostTensor tokens_of(std::int64_t number, std::int64_t batch, std::int64_t length) {
  std::mt19937 generator(static_cast<unsigned>(number + 1));
  HostTensor tokens(i64, {batch, length + 1});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, static_cast<std::int64_t>(generator() % 32));
  return tokens;
}

Tensors start_of(const ir::Graph& step) {
  Tensors values = step_arguments(step, 1, 1, 0.3);
  values.erase("tokens");
  return values;
}

Trained train(const ir::Graph& step, int steps, const Division& division, const std::shared_ptr<Ranks>& ranks,
              std::int64_t batch, const MachineOf& machine) {
  const Tensors made = division.start ? Tensors{} : start_of(step);
  CompileOptions options = machine ? machine(ranks) : CompileOptions{};
  options.threads = division.threads;
  options.cache = division.cache ? division.cache : shared_kernels();
  options.ranks = ranks;
  if (ranks) options.split = shard::parse_splits(division.splits);
  if (ranks) options.parts = division.parts;
  options.lower.bucket_bytes = division.bucket_bytes;
  Executable executable = compile(step, options);
  const auto placement = [&](const std::string& name) { return executable.placements().at(name); };
  for (const auto& [name, value] : division.start ? *division.start : made)
    executable.parameters().set(name, ranks ? own_part(*ranks, value, placement(name), name) : value);
  Trained trained;
  trained.decided = executable.summary().division;
  for (int i = 0; i < steps; ++i) {
    HostTensor tokens = tokens_of(i, batch);
    if (ranks) tokens = own_part(*ranks, tokens, placement("tokens"), "tokens");
    trained.losses.push_back(executable.run({{"tokens", tokens}}).at("loss").get(0));
  }
  if (ranks) trained.sent = {ranks->sent()};
  for (const auto& [name, value] : executable.parameters().values())
    trained.states.set(name, ranks ? whole_of(*ranks, value, placement(name), name) : value);
  return trained;
}

Trained train(const ir::Graph& step, int steps, const Tensors* start) {
  Division none;
  none.start = start;
  return train(step, steps, none, nullptr);
}

Trained train_in_threads(const ir::Graph& step, int steps, const Division& division, std::int64_t batch,
                         const MachineOf& machine) {
  const shard::Mesh mesh = shard::Mesh::parse(division.mesh);
  OnceStore once;
  Division own_division = division;
  if (!own_division.cache) own_division.cache = &once;
  // Created once, not by each rank.
  const Tensors values = division.start ? Tensors{} : start_of(step);
  if (!division.start) own_division.start = &values;
  Trained first;
  std::vector<ir::SentBytes> sent(static_cast<std::size_t>(mesh.size()));
  run_ranks(static_cast<int>(mesh.size()), [&](int rank, const MakeCommunicator& make) {
    const auto ranks = std::make_shared<Ranks>(make, mesh, RanksOptions{.timeout = 60});
    Trained own = train(step, steps, own_division, ranks, batch, machine);
    sent[static_cast<std::size_t>(rank)] = own.sent[0];
    if (rank == 0) first = std::move(own);
  });
  first.sent = sent;
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

Tensors lookup_arguments(std::int64_t last) {
  return {{"table", HostTensor(f32, {4, 2})}, {"ids", HostTensor::from_ints({3}, {0, 1, last})}};
}

std::vector<RankFailure> rank_failures(int count,
                                       const std::function<void(int rank, const MakeCommunicator&)>& body) {
  std::vector<RankFailure> found(static_cast<std::size_t>(count));
  try {
    run_ranks(count, [&](int rank, const MakeCommunicator& make) {
      try {
        body(rank, make);
      } catch (const UserError& error) {
        found[static_cast<std::size_t>(rank)] = {std::string(error.label()), error.what()};
        throw;
      }
    });
  } catch (const UserError&) {  // `found` has the errors by rank
  }
  return found;
}

}  // namespace lathe::test
