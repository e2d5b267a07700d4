#include <catch2/catch.hpp>

#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"
#include "passes/shard/predict/step_time.h"
#include "tests/shard/support.h"

/// send_recv: values that a process sends to another one along an axis.
namespace lathe::shard::test {

namespace {

/// Returns the vector that each of `ranks` processes receives when vectors are sent on by `offset` ranks.
std::vector<double> after_send(int ranks, int offset) {
  const ir::Graph graph = ir::parse_graph(
      "graph @g(input %x: f64[2]) {\n  %1 = send_recv %x {axis=\"m\", ranks=" + std::to_string(ranks) +
          ", offset=" + std::to_string(offset) + "}\n  output \"y\" %1\n}",
      "send");
  const Placement along{SplitDim{0, Dim(1), Dim(2)}};
  const Sharded sharded{graph, Mesh({{"m", ranks}}), {{"x", along}}, {{"y", along}}, {}, {}};
  HostTensor all(f64, {2 * ranks});
  for (int i = 0; i < 2 * ranks; ++i) all.set(i, i);
  const HostTensor moved = simulate(sharded, {{"x", all}}).at("y");
  std::vector<double> values;
  for (int i = 0; i < 2 * ranks; ++i) values.push_back(moved.get(i));
  return values;
}

/// A value that is sent to three of four processes in turn, with a matmul of each received value.
ir::Graph round_of_three() {
  return ir::parse_graph(R"(graph @g(input %x: f32[8, 16], input %w: f32[16, 4]) {
  %1 = contract %x, %w {spec="ab,bc->ac"}
  %2 = send_recv %x {axis="m", ranks=4, offset=1}
  %3 = contract %2, %w {spec="ab,bc->ac"}
  %4 = send_recv %2 {axis="m", ranks=4, offset=1}
  %5 = contract %4, %w {spec="ab,bc->ac"}
  %6 = add %1, %3
  %7 = add %6, %5
  output "y" %7
})",
                         "model.lathe");
}

}  // namespace

TEST_CASE("send_recv: each process receives from the one at the given offset, cyclically") {
  CHECK(after_send(3, 1) == std::vector<double>{4, 5, 0, 1, 2, 3});
  CHECK(after_send(3, -1) == std::vector<double>{2, 3, 4, 5, 0, 1});
  CHECK(after_send(3, 4) == after_send(3, 1));
  CHECK(after_send(3, 3) == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(after_send(1, 1) == std::vector<double>{0, 1});
}

TEST_CASE("send_recv: a process sends the whole value in one message") {
  const ir::Graph graph = round_of_three();
  const ir::Node& node = graph.nodes[3];
  REQUIRE(node.op->name.value == "send_recv");
  const Collective collective = described(graph, node);
  CHECK(bytes_sent(collective) == 8 * 16 * 4);
  CHECK(messages(collective) == 1);
  CHECK(collective_seconds(collective, slow_network(), {}) == Approx(512 / 192.0 + 0.5));
}

TEST_CASE("send_recv: a received value is forwarded when it is first read") {
  const Program program = program_of(round_of_three());
  REQUIRE(program.collectives.size() == 2);
  const lathe::Collective &first = program.collectives[0], &second = program.collectives[1];
  CHECK(first.start == 0);
  CHECK(first.done > 0);
  CHECK(second.start == first.done);
  CHECK(second.done > second.start);
  // In the predicted timeline, the first waits for nothing, and the second for the previous matmul.
  StepRates rates = slow_network();
  rates.flops = 512;  // each matmul takes 2 seconds
  const StepTime time = step_time(round_of_three(), rates, {});
  const double send = 512 / 192.0 + 0.5;
  CHECK(time.collectives == Approx(2 * send));
  CHECK(time.waiting == Approx(2 * (send - 2)));
}

TEST_CASE("send_recv: a full cycle is not a collective") {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(input %x: f32[8]) {
  %1 = exp %x
  %2 = send_recv %1 {axis="m", ranks=4, offset=8}
  %3 = exp %2
  output "y" %3
})",
                                          "model.lathe");
  CHECK(program_of(graph).collectives.empty());
}

}  // namespace lathe::shard::test
