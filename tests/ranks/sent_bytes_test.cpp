#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/memory/memory_plan.h"
#include "passes/shard/predict/rank_scaling.h"
#include "runtime/executable_program.h"
#include "tests/ranks/support.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/once_store.h"

/// Bytes that compiled steps send, compared with the prediction of the pass.
namespace lathe::test {

namespace {

std::vector<Division> divisions() {
  return {{"data=3", "B:data"},
          {"data=4", "B:data"},
          {"model=2", by_model},
          {"data=2,model=2", "B:data," + by_model},
          {"data=4", "B:data", {.states = "data"}},
          {"data=4", "B:data", {.parameters = "data"}},
          {"data=4", "B:data", {.parameters = "data", .second_gather = shard::SecondGather::never}},
          {"data=2,seq=2", "B:data,T:seq"},
          {"data=2,seq=2", "B:data,T:seq", {.ring = shard::RingWay::always}},
          {"seq=3", "T:seq", {.ring = shard::RingWay::always}},
          {"data=2,fsdp=2", "B:data,B:fsdp", {.states = "data", .parameters = "fsdp"}}};
}

}  // namespace

TEST_CASE("ranks: every rank sends the predicted bytes, except scalars") {
  constexpr int steps = 2;
  for (const ir::Graph& step : {small_step(f32, 0.5, 1), small_llama_step(f32)}) {
    OnceStore cache;
    for (Division division : divisions()) {
      CAPTURE(step.name, division.mesh, division.parts.states, division.parts.parameters);
      division.cache = &cache;
      const shard::Mesh mesh = shard::Mesh::parse(division.mesh);
      const shard::Sharded sharded = shard::shard(step, mesh, shard::parse_splits(division.splits), division.parts);
      const std::int64_t batch = mesh[0].ranks == 3 ? 6 : 8;
      const DimBindings dims = shard::local_dims(sharded, {{"B", batch}, {"T", 6}});
      const Trained trained = train_in_threads(step, steps, division, batch);
      for (std::int64_t r = 0; r < mesh.size(); ++r) {
        const shard::SentBytes predicted = shard::bytes_sent(sharded, r, dims);
        const shard::SentBytes& sent = trained.sent[static_cast<std::size_t>(r)];
        CHECK(sent.tensors == steps * predicted.tensors);
        CHECK(sent.scalars == steps * predicted.scalars);
        CHECK(predicted.tensors > 0);
      }
    }
  }
}

TEST_CASE("ranks: a memory budget decides whether parameters are gathered again, and all ranks agree") {
  const ir::Graph step = small_step(f32, 0, 3);
  const Division division{"data=2", "B:data", {.parameters = "data"}};
  const auto trained_within = [&](std::int64_t first, std::int64_t second) {
    return train_in_threads(step, 1, division, 8, [&](const std::shared_ptr<Ranks>& ranks) {
      CompileOptions options;
      options.lower.memory =
          MemoryBudget{.bytes = ranks->rank() == 0 ? first : second, .dims = {{"B@data", 4}, {"T", 6}}};
      return options;
    });
  };
  const auto sent_within = [&](std::int64_t first, std::int64_t second) {
    return trained_within(first, second).sent[0].tensors;
  };
  const auto predicted = [&](shard::SecondGather second) {
    const shard::Sharded sharded =
        shard::shard(step, shard::Mesh::parse(division.mesh), shard::parse_splits(division.splits),
                     {.parameters = "data", .second_gather = second});
    return shard::bytes_sent(sharded, 0, shard::local_dims(sharded, {{"B", 8}, {"T", 6}})).tensors;
  };
  const std::int64_t kept = predicted(shard::SecondGather::never), again = predicted(shard::SecondGather::always);
  CHECK(kept < again);
  const auto planned = [&](shard::SecondGather second) {
    std::int64_t bytes = 0;
    run_ranks(2, [&](int rank, const MakeCommunicator& make) {
      const auto ranks =
          std::make_shared<Ranks>(make, shard::Mesh::parse(division.mesh), RanksOptions{.timeout = 60});
      const Executable executable = compile(step, {.threads = 1,
                                                   .cache = shared_kernels(),
                                                   .ranks = ranks,
                                                   .split = shard::parse_splits(division.splits),
                                                   .parts = {.parameters = "data", .second_gather = second}});
      DimBindings dims{{"B@data", 4}, {"T", 6}};
      dims.insert(ranks->positions().begin(), ranks->positions().end());
      if (rank == 0) bytes = memory_plan_of(executable, dims).total_bytes();
    });
    return bytes;
  };
  const std::int64_t room = planned(shard::SecondGather::never);
  REQUIRE(planned(shard::SecondGather::always) < room);
  const Trained within = trained_within(room, room), second_lacks_room = trained_within(room, room - 1);
  CHECK(within.sent[0].tensors == kept);
  CHECK_THAT(within.decided, Catch::StartsWith("gathered parameters are kept for the backward pass: keeping "
                                               "them needs "));
  CHECK(second_lacks_room.sent[0].tensors == again);
  CHECK_THAT(second_lacks_room.decided, Catch::StartsWith("parameters are gathered again for the backward pass, as "
                                                          "other ranks need: "));
  CHECK(sent_within(room - 1, 2 * room) == again);
  CHECK_THROWS_WITH(sent_within(1000, 1000), Catch::Contains("[memory_budget]"));
}

namespace {

/// Returns the sums of rank 0 in two runs of a graph on vectors of 8.
SummedBytes summed_of(std::string_view text) {
  const ir::Graph graph = ir::parse_graph(text, "summed");
  SummedBytes found;
  run_ranks(2, [&](int rank, const MakeCommunicator& make) {
    const auto ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}), RanksOptions{.timeout = 60});
    Executable executable = compile(graph, {.threads = 1, .ranks = ranks});
    for (int i = 0; i < 2; ++i) (void)executable.run({{"x", HostTensor(f32, {8})}});
    if (rank == 0) found = ranks->summed();
  });
  return found;
}

}  // namespace

TEST_CASE("ranks: sums that start before the last summed value exists are early") {
  // The second sum depends on the first.
  const SummedBytes two = summed_of(R"(graph @g(input %x: f32[8]) {
  %1 = exp %x
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  %3 = exp %2
  %4 = all_reduce %3 {axis="m", ranks=2, combine="sum"}
  output "a" %4
})");
  CHECK(two.all == 2 * 2 * 32);
  CHECK(two.early == 2 * 32);
  // The only sum: a gather and a single element do not count.
  const SummedBytes one = summed_of(R"(graph @g(input %x: f32[8]) {
  %1 = exp %x
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  %3 = sum %2 {dims=[0], keepdim=false}
  %4 = all_reduce %3 {axis="m", ranks=2, combine="sum"}
  %5 = all_gather %1 {axis="m", ranks=2, dim=0, outer=1}
  output "a" %4
  output "b" %5
})");
  CHECK(one.all == 2 * 32);
  CHECK(one.early == 0);
}

}  // namespace lathe::test
