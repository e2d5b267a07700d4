#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>

#include "ir/tensor/text/parser.h"
#include "runtime/ranks/agreement.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/ranks/support.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"

namespace lathe::test {

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Sums the negation of an input over two ranks; its logarithm is added to a state.
const char* const logs_text = R"(graph @g(input %x: f32[1], state %kept: f32[1]) {
  %1 = neg %x
  %2 = log %1
  %3 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  %4 = all_reduce %2 {axis="m", ranks=2, combine="sum"}
  %5 = add %kept, %4
  output "sum" %3
  update %kept <- %5
})";

}  // namespace

TEST_CASE("ranks: an index out of range on one rank ends all ranks with its rank, op and line") {
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  const auto found = rank_failures(2, [&](int rank, const MakeCommunicator& make) {
    Executable executable = compile(
        graph,
        {.threads = 1, .cache = shared_kernels(), .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))});
    (void)executable.run(lookup_arguments(rank == 1 ? 9 : 2));
  });
  CHECK(found[1].label == "index_range");
  CHECK(found[0].label == "rank_failed");
  INFO(found[0].text);
  for (const std::string_view part : {"rank 1 of 2", "gather", "lookup:2", "index 9"})
    CHECK(contains(found[0].text, part));
}

TEST_CASE("ranks: a missing rank is an error with rank, op and line") {
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  const auto found = rank_failures(2, [&](int rank, const MakeCommunicator& make) {
    // Rank 0 has the shorter timeout.
    const auto ranks =
        std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}), RanksOptions{.timeout = rank == 0 ? 3.0 : 60.0});
    Executable executable = compile(graph, {.threads = 1, .cache = shared_kernels(), .ranks = ranks});
    if (rank == 0) (void)executable.run(lookup_arguments(2));
    if (rank == 1) ranks->gather("");  // never arrives at rank 0
  });
  INFO(found[0].text);
  CHECK(found[0].label == "rank_stalled");
  for (const std::string_view part : {"all_reduce", "lookup:3", "rank 0 waits", "over m"})
    CHECK(contains(found[0].text, part));
}

TEST_CASE("ranks: graphs and CPUs that differ are reported by all ranks before the run") {
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup"), other = small_step(f32);
  for (const bool of_graph : {true, false}) {
    const auto found = rank_failures(2, [&](int rank, const MakeCommunicator& make) {
      CompileOptions options{
          .threads = 1, .cache = shared_kernels(), .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))};
      if (!of_graph) options.target = Target::named(rank == 0 ? "x86-64-v2" : "x86-64-v3");
      (void)compile(of_graph && rank == 1 ? other : graph, options);
    });
    for (const RankFailure& failure : found) {
      INFO(failure.text);
      CHECK(failure.label == "ranks_differ");
      CHECK(contains(failure.text, of_graph ? "ranks differ in the graph: rank 0 has " : "x86-64-v2"));
      if (!of_graph) CHECK(contains(failure.text, "x86-64-v3"));
    }
  }
}

TEST_CASE("ranks: options that differ are reported by all ranks before the run, with equal graphs and CPUs") {
  const ir::Graph step = small_step(f32);
  const auto with = [&](const std::function<void(CompileOptions&)>& change) {
    return rank_failures(2, [&](int rank, const MakeCommunicator& make) {
      CompileOptions options{.threads = 1,
                             .cache = shared_kernels(),
                             .ranks = std::make_shared<Ranks>(make, Mesh({{"data", 2}})),
                             .split = {{"B", "data"}}};
      if (rank == 1) change(options);
      (void)compile(step, options);
    });
  };
  const std::vector<std::function<void(CompileOptions&)>> changes{
      [](CompileOptions& options) { options.lower.attention = AttentionFusion::off; },
      [](CompileOptions& options) { options.lower.bucket_bytes = 0; }};
  for (const auto& change : changes)
    for (const RankFailure& failure : with(change)) {
      INFO(failure.text);
      CHECK(failure.label == "ranks_differ");
      CHECK(contains(failure.text, "ranks differ in the compiled code: rank 0 has "));
    }
  for (const RankFailure& failure : with([](CompileOptions&) {})) CHECK(failure.label.empty());
}

TEST_CASE("ranks: short option forms match the long ones") {
  const ir::Graph step = small_step(f32);
  const auto placed = [&](const CompileOptions& given) {
    std::map<std::string, shard::Placement> found;
    std::string label;
    const auto failures = rank_failures(2, [&](int rank, const MakeCommunicator& make) {
      CompileOptions options = given;
      options.threads = 1;
      options.cache = shared_kernels();
      options.ranks = std::make_shared<Ranks>(make, Mesh({{"data", 2}}));
      const Executable executable = compile(step, options);
      CHECK(executable.ranks() == options.ranks);
      if (rank == 0) found = executable.placements();
    });
    return std::pair(found, failures[0].label);
  };
  const Dim B{"B"};
  const auto [expected, no_label] = placed({.split = {{"B", "data"}}, .parts = {.states = "data"}});
  REQUIRE(no_label.empty());
  const auto [found, none] = placed({.mesh = {{"data", 2}}, .split = {{B, "data"}}, .shard_states = "data"});
  CHECK(none.empty());
  CHECK(found == expected);
  CHECK(placed({.mesh = {{"data", 4}}}).second == "compile_options");
  CHECK(placed({.mesh = {{"data", 1}, {"model", 2}}}).second == "compile_options");
  CHECK(placed({.shard_states = "data", .parts = {.states = "model"}}).second == "compile_options");
}

TEST_CASE("ranks: find_nan names the lowest rank whose own op makes a NaN, its line and ranges, on all ranks") {
  const ir::Graph graph = ir::parse_graph(logs_text, "logs");
  // By rank: the number whose logarithm is computed. No rank alone makes the sum that overflows.
  struct Case {
    std::vector<double> inputs;
    std::vector<std::string> said;
  };
  const std::vector<Case> cases{
      {{1, -2}, {"not finite on rank 1 of 2: ", "at logs:3:\n    %2 = log %1", "operand %1: -2 .. -2"}},
      {{-1, 2}, {"not finite on rank 0 of 2: ", "at logs:3:\n    %2 = log %1", "operand %1: -1 .. -1"}},
      {{-1, -2}, {"not finite on rank 0 of 2: ", "at logs:3:\n    %2 = log %1", "operand %1: -1 .. -1"}},
      {{3e38, 3e38},
       {"not finite on rank 0 of 2: ", "at logs:4:\n    %3 = all_reduce %1", "operand %1: 3e+38 .. 3e+38"}}};
  for (const Case& each : cases) {
    CAPTURE(each.inputs);
    const auto failures = rank_failures(2, [&](int rank, const MakeCommunicator& make) {
      const auto ranks = std::make_shared<Ranks>(make, Mesh({{"m", 2}}), RanksOptions{.timeout = 60});
      Executable executable =
          compile(graph, {.threads = 1, .cache = shared_kernels(), .find_nan = true, .ranks = ranks});
      executable.parameters().set("kept", HostTensor::from({1}, {0.5}));
      const auto run = [&](double x) { return executable.run({{"x", HostTensor::from({1}, {-x})}}); };
      if (run(rank + 1).at("sum").get(0) != 3) throw InternalError("another sum");
      const HostTensor before = executable.parameters().get("kept");
      std::optional<UserError> found;
      try {
        run(each.inputs[static_cast<std::size_t>(rank)]);
      } catch (const UserError& error) {
        found = error;
      }
      // The ranks are still connected, and the state is the one before the run.
      if (!executable.parameters().get("kept").same_bits(before)) throw InternalError("another state");
      if (run(rank + 1).at("sum").get(0) != 3) throw InternalError("another sum after the error");
      wait_for_ranks(*ranks);
      if (found) throw UserError(*found);
    });
    REQUIRE(failures.size() == 2);
    CHECK(failures[0].text == failures[1].text);
    for (const RankFailure& failure : failures) {
      CHECK(failure.label == "not_finite");
      for (const std::string& part : each.said) CHECK_THAT(failure.text, Catch::Contains(part));
    }
  }
}

TEST_CASE("ranks: a sharded graph accepts no further splits or shards") {
  const auto with = [](const CompileOptions& given) {
    return rank_failures(2, [&](int, const MakeCommunicator& make) {
      CompileOptions options = given;
      options.threads = 1;
      options.cache = shared_kernels();
      options.ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}));
      (void)compile(ir::parse_graph(lookup_text, "lookup"), options);
    });
  };
  CHECK(with({})[0].label == "");
  for (const CompileOptions& options :
       {CompileOptions{.split = {{"B", "m"}}}, CompileOptions{.parts = {.states = "m"}},
        CompileOptions{.parts = {.parameters = "m"}}}) {
    const auto found = with(options);
    for (const RankFailure& failure : found) CHECK(failure.label == "divided_already");
    CHECK(contains(found[0].text, "@g is already sharded over processes"));
  }
}

TEST_CASE("ranks: rejects a mesh of another number of processes") {
  const auto with_mesh = [](const char* mesh) {
    return rank_failures(2, [&](int, const MakeCommunicator& make) { Ranks(make, shard::Mesh::parse(mesh)); })[0]
        .label;
  };
  CHECK(with_mesh("data=2") == "");
  CHECK(with_mesh("data=3") == "mesh_processes");
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  const auto axis = rank_failures(2, [&](int, const MakeCommunicator& make) {
    (void)compile(graph, {.threads = 1,
                          .cache = shared_kernels(),
                          .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"data", 2}}))});
  });
  CHECK(axis[0].label == "mesh_axis");
}

TEST_CASE("ranks: without processes, rejects the graph of several processes, and splits") {
  const auto label = [](const ir::Graph& graph, const CompileOptions& options) {
    return error_label([&] { (void)compile(graph, options); });
  };
  CHECK(label(ir::parse_graph(lookup_text, "lookup"), {}) == "one_process");
  CHECK(label(small_step(f32), {.split = {{"B", "data"}}}) == "mesh_processes");
  CHECK(label(small_step(f32), {.parts = {.states = "data"}}) == "mesh_processes");
}

}  // namespace lathe::test
