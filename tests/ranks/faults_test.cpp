#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "ir/tensor/text/parser.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/ranks/support.h"
#include "tests/support/texts/error_label.h"

namespace lathe::test {

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("ranks: an index out of range on one rank ends all ranks with its rank, op and line") {
  const ir::Graph graph = ir::parse_graph(lookup_text, "lookup");
  const auto found = rank_failures(2, [&](int rank, const MakeCommunicator& make) {
    Executable executable =
        compile(graph, {.threads = 1, .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))});
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
    Executable executable = compile(graph, {.threads = 1, .ranks = ranks});
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
      CompileOptions options{.threads = 1, .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))};
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
      CompileOptions options{
          .threads = 1, .ranks = std::make_shared<Ranks>(make, Mesh({{"data", 2}})), .split = {{"B", "data"}}};
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

TEST_CASE("ranks: find_nan is refused by name") {
  const auto failures = rank_failures(2, [&](int, const MakeCommunicator& make) {
    CompileOptions options;
    options.threads = 1;
    options.find_nan = true;
    options.ranks = std::make_shared<Ranks>(make, Mesh({{"data", 2}}));
    (void)compile(small_step(f32), options);
  });
  for (const RankFailure& failure : failures) {
    CHECK(failure.label == "compile_options");
    CHECK_THAT(failure.text, Catch::Contains("find_nan (--find-nan) is for one process"));
  }
}

TEST_CASE("ranks: a sharded graph accepts no further splits or shards") {
  const auto with = [](const CompileOptions& given) {
    return rank_failures(2, [&](int, const MakeCommunicator& make) {
      CompileOptions options = given;
      options.threads = 1;
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
    (void)compile(graph, {.threads = 1, .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"data", 2}}))});
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
