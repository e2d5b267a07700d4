#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "passes/program/program.h"
#include "passes/shard/predict/rank_scaling.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/cuda/ranks/mock_ranks.h"
#include "tests/ranks/support.h"

/// Training steps with one GPU per rank, compared with CPU ranks.
namespace lathe::test {

namespace {

using Order = MockDriver::Order;

/// Runs two steps and checks that losses, states and sent bytes equal those on CPUs and the prediction.
void check_steps(const ir::Graph& step, const Division& division, Order order, double most) {
  CAPTURE(step.name, division.mesh, division.parts.states, division.parts.parameters);
  const shard::Mesh mesh = shard::Mesh::parse(division.mesh);
  MockRanks gpus(static_cast<int>(mesh.size()), order);
  const Trained expected = train_in_threads(step, 2, division);
  const Trained found =
      train_in_threads(step, 2, division, 8, [&](const auto& ranks) { return gpus.options(ranks); });
  CHECK(difference(found, expected) < most);
  CHECK(found.sent == expected.sent);
  const shard::Sharded sharded = shard::shard(step, mesh, shard::parse_splits(division.splits), division.parts);
  const DimBindings dims = shard::local_dims(sharded, {{"B", 8}, {"T", 6}});
  std::int64_t sent = 0;
  for (std::int64_t r = 0; r < mesh.size(); ++r) {
    const shard::SentBytes predicted = shard::bytes_sent(sharded, r, dims);
    CHECK(found.sent.at(static_cast<std::size_t>(r)).tensors == 2 * predicted.tensors);
    sent += 2 * (predicted.tensors + predicted.scalars);
  }
  CHECK(gpus.control().sent == static_cast<std::uint64_t>(sent));
  CHECK(gpus.faults() == "");
}

}  // namespace

TEST_CASE("GPU ranks: GPT-2 steps match CPU ranks, for any order of streams") {
  const ir::Graph step = small_step(f64);
  for (const Order order : {Order::late, Order::early}) {
    check_steps(step, {"data=2", "B:data"}, order, 1e-10);
    check_steps(step, {"model=2", by_model}, order, 1e-10);
  }
  check_steps(step, {"data=2,model=2", "B:data," + by_model}, Order::late, 1e-10);
}

TEST_CASE("GPU ranks: steps with sharded states and parameters match CPU ranks") {
  const ir::Graph step = small_step(f64);
  check_steps(step, {"data=2", "B:data", {.states = "data"}}, Order::early, 1e-10);
  check_steps(step, {"data=2", "B:data", {.parameters = "data"}}, Order::late, 1e-10);
  check_steps(step, {"data=2,model=2", "B:data," + by_model, {.states = "data", .parameters = "data"}}, Order::early,
              1e-10);
}

TEST_CASE("GPU ranks: steps with ring attention match CPU ranks") {
  const shard::ShardOptions ring{.ring = shard::RingWay::always};
  check_steps(small_step(f64), {"seq=2", "T:seq", ring}, Order::late, 1e-10);
  check_steps(small_step(f64), {"seq=3", "T:seq", ring}, Order::early, 1e-10);
  check_steps(small_llama_step(f64), {"data=2,seq=2", "B:data,T:seq", ring}, Order::early, 1e-10);
}

TEST_CASE("GPU ranks: Llama steps in f32 match CPU ranks") {
  check_steps(small_llama_step(f32), {"data=2", "B:data"}, Order::late, 2e-5);
}

TEST_CASE("GPU ranks: the same mesh gives the same bits for any order of streams and bucket size") {
  const ir::Graph step = small_step(f32);
  std::vector<Trained> found;
  for (const auto& [order, bytes] :
       {std::pair{Order::late, 25 << 20}, {Order::early, 25 << 20}, {Order::late, 3000}}) {
    MockRanks gpus(2, order);
    const Division division{.mesh = "data=2", .splits = "B:data", .bucket_bytes = bytes};
    found.push_back(train_in_threads(step, 2, division, 8, [&](const auto& ranks) { return gpus.options(ranks); }));
  }
  CHECK(same_bits(found[0], found[1]));
  CHECK(same_bits(found[0], found[2]));
}

}  // namespace lathe::test
