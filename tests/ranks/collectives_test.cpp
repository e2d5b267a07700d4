#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/lowering/program.h"
#include "passes/shard/simulate.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/ranks/support.h"

/// Each collective, compiled, against the simulator.
namespace lathe::test {

namespace {

/// Runs a graph of one process on three, each with values of its own, and compares its output y with that of the
/// simulator, which is given all of them along a dim of their own.
void check_collective(const std::string& op, const std::string& type, std::vector<std::int64_t> sizes, DType dtype) {
  CAPTURE(op, name(dtype));
  constexpr int ranks = 3;
  const shard::Mesh mesh({{"m", ranks}});
  const ir::Graph graph = ir::parse_graph(
      fmt::format("graph @g(input %x: {}[{}]) {{\n  %1 = {}\n  output \"y\" %1\n}}", name(dtype), type, op),
      "collective");
  std::vector<HostTensor> given, found(ranks);
  std::vector<std::int64_t> all_sizes = sizes;
  all_sizes[0] *= ranks;
  HostTensor all(dtype, all_sizes);
  for (int r = 0; r < ranks; ++r) {
    HostTensor& own = given.emplace_back(dtype, sizes);
    for (std::int64_t i = 0; i < own.numel(); ++i) {
      const auto number = static_cast<double>((i * 7 + r * 5) % 23 - 11);
      is_float(dtype) ? own.set(i, number / 8) : own.set_int(i, static_cast<std::int64_t>(number));
      is_float(dtype) ? all.set(r * own.numel() + i, number / 8)
                      : all.set_int(r * own.numel() + i, static_cast<std::int64_t>(number));
    }
  }
  run_ranks(ranks, [&](int rank, const MakeCommunicator& make) {
    Executable executable = compile(
        graph,
        {.threads = 1, .poison = true, .ranks = std::make_shared<Ranks>(make, mesh, RanksOptions{.patience = 60})});
    found[static_cast<std::size_t>(rank)] = executable.run({{"x", given[static_cast<std::size_t>(rank)]}}).at("y");
  });
  const shard::Placement along_first{shard::SplitDim{0, Dim(1), Dim(sizes[0])}};
  const shard::Sharded sharded{graph, mesh, {{"x", along_first}}, {{"y", along_first}}, {}, {}};
  const HostTensor expected = shard::simulate(sharded, {{"x", all}}).at("y");
  const std::int64_t each = found[0].numel();
  REQUIRE(expected.numel() == each * ranks);
  for (int r = 0; r < ranks; ++r)
    for (std::int64_t i = 0; i < each; ++i)
      REQUIRE(found[static_cast<std::size_t>(r)].get(i) == expected.get(r * each + i));
}

}  // namespace

TEST_CASE("ranks: compiled collectives exchange what the simulator does") {
  for (const DType dtype : {f64, f32, bf16, i64, i32}) {
    for (const char* combine : {"sum", "max", "min"})
      for (const std::int64_t n : {1, 5, 6, 700})
        check_collective(fmt::format("all_reduce %x {{axis=\"m\", ranks=3, combine=\"{}\"}}", combine),
                         fmt::format("{}, 2", n), {n, 2}, dtype);
    for (const int dim : {0, 1, 2})
      check_collective(fmt::format("all_gather %x {{axis=\"m\", ranks=3, dim={}, outer=1}}", dim), "2, 4, 3",
                       {2, 4, 3}, dtype);
    check_collective("all_gather %x {axis=\"m\", ranks=3, dim=1, outer=2}", "2, 4, 3", {2, 4, 3}, dtype);
    for (const int dim : {0, 1, 2})
      check_collective(fmt::format("reduce_scatter %x {{axis=\"m\", ranks=3, dim={}, outer=1}}", dim), "6, 12, 3",
                       {6, 12, 3}, dtype);
    check_collective("reduce_scatter %x {axis=\"m\", ranks=3, dim=1, outer=2}", "6, 12, 3", {6, 12, 3}, dtype);
    check_collective("all_to_all %x {axis=\"m\", ranks=3, split_dim=1, concat_dim=0}", "2, 6", {2, 6}, dtype);
    check_collective("all_to_all %x {axis=\"m\", ranks=3, split_dim=0, concat_dim=2}", "6, 2, 3", {6, 2, 3}, dtype);
  }
}

TEST_CASE("ranks: exchanges of several all_reduces go together up to the size of a bucket") {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(input %x: f32[8], input %y: f32[8]) {
  %1 = exp %x
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  %3 = exp %y
  %4 = all_reduce %3 {axis="m", ranks=2, combine="sum"}
  output "a" %2
  output "b" %4
})",
                                          "buckets");
  for (const auto& [bytes, exchanges] : std::vector<std::pair<std::int64_t, std::size_t>>{{0, 2}, {63, 2}, {64, 1}})
    run_ranks(2, [&, bytes = bytes, exchanges = exchanges](int, const MakeCommunicator& make) {
      CompileOptions options{.threads = 1, .ranks = std::make_shared<Ranks>(make, shard::Mesh({{"m", 2}}))};
      options.lower.bucket_bytes = bytes;
      const Executable executable = compile(graph, options);
      if (executable.program().exchanges.size() != exchanges) throw InternalError("another number of exchanges");
    });
}

}  // namespace lathe::test
