#include "passes/shard/predict/step_time.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/shard/predict/product_flops.h"
#include "passes/shard/predict/rate_text.h"
#include "tests/shard/support.h"

/// The formulas for predicted times, on cases computed by hand.
namespace lathe::shard::test {

namespace {

ir::Graph read_graph(std::string_view text) { return ir::parse_graph(text, "model.lathe"); }

/// 1024 operations, 192 bytes and half a message per second.
StepRates slow() {
  StepRates rates = slow_network();
  rates.flops = 1024;
  rates.bucket_bytes = 0;
  return rates;
}

Collective collective(ir::CollectiveKind kind, std::int64_t ranks, std::int64_t elements) {
  return {kind, {"m", ranks}, "", Dim(elements), 4, {}, ""};
}

}  // namespace

TEST_CASE("shard: a process sends the bytes of its chunks") {
  CHECK(bytes_sent(collective(ir::CollectiveKind::all_reduce, 4, 32)) == 2 * 3 * 128 / 4);
  CHECK(bytes_sent(collective(ir::CollectiveKind::all_gather, 4, 32)) == 3 * 128 / 4);
  CHECK(bytes_sent(collective(ir::CollectiveKind::reduce_scatter, 4, 32)) == 3 * 128 / 4);
  // 10 elements among 4 ranks: chunks of 3, 3, 3 and 1. A rank sends other ranks' chunks once, and its own chunk to
  // three.
  const std::int64_t sent[] = {7 + 9, 7 + 9, 7 + 9, 9 + 3};
  for (int r = 0; r < 4; ++r)
    CHECK(bytes_sent(collective(ir::CollectiveKind::all_reduce, 4, 10), {}, r) == 4 * sent[r]);
  // One element: the first rank sends it to three, each other rank sends its share to the first.
  for (int r = 0; r < 4; ++r)
    CHECK(bytes_sent(collective(ir::CollectiveKind::all_reduce, 4, 1), {}, r) == (r == 0 ? 12 : 4));
}

TEST_CASE("shard: the time of a collective is latency per message plus bytes over bandwidth") {
  CHECK(collective_seconds(collective(ir::CollectiveKind::all_reduce, 4, 32), slow(), {}) ==
        Approx(2 * 3 * 0.5 + 192.0 / 192));
  CHECK(collective_seconds(collective(ir::CollectiveKind::all_gather, 4, 32), slow(), {}) ==
        Approx(3 * 0.5 + 96.0 / 192));
  CHECK(collective_seconds(collective(ir::CollectiveKind::all_reduce, 1, 32), slow(), {}) == 0);
}

TEST_CASE("shard: matmuls count two operations per multiply-add") {
  const ir::Graph graph = two_products();
  CHECK(product_flops(graph, DimBindings{}) == 2 * 1024);
  const ir::Graph batched = read_graph(R"(graph @g(input %x: f32[B, 3, 5], input %w: f32[B, 5, 7]) {
  %1 = contract %x, %w {spec="abc,acd->abd"}
  %2 = exp %1
  output "y" %2
})");
  CHECK(product_flops(batched, {{"B", 10}}) == 2 * 10 * 3 * 5 * 7);
}

TEST_CASE("shard: a collective overlaps matmuls that do not need it") {
  // Matmuls until 1 and 2; communication of 4 seconds from 1 to 5 and from 5 to 9; the sum waits for both.
  const StepTime time = step_time(two_products(), slow(), {});
  CHECK(time.products == Approx(2));
  CHECK(time.collectives == Approx(8));
  CHECK(time.waiting == Approx(7));
  CHECK(time.step() == Approx(9));
}

TEST_CASE("shard: all_reduces in one bucket share their messages") {
  StepRates rates = slow();
  rates.bucket_bytes = 256;
  // Both start at 2: 6 messages of half a second, and 384 bytes.
  const StepTime time = step_time(two_products(), rates, {});
  CHECK(time.collectives == Approx(3 + 2));
  CHECK(time.step() == Approx(2 + 5));
  rates.bucket_bytes = 255;
  CHECK(step_time(two_products(), rates, {}).collectives == Approx(8));
}

TEST_CASE("shard: a node that needs a collective waits for it") {
  const ir::Graph graph = read_graph(R"(graph @g(input %x: f32[8, 16], input %v: f32[16, 4], input %w: f32[4, 16]) {
  %1 = contract %x, %v {spec="ab,bc->ac"}
  %2 = all_reduce %1 {axis="m", ranks=4, combine="sum"}
  %3 = view %2 {shape=[4, 8]}
  %4 = transpose %3 {dim0=0, dim1=1}
  %5 = contract %4, %w {spec="ab,bc->ac"}
  output "y" %5
})");
  const StepTime time = step_time(graph, slow(), {});
  CHECK(time.waiting == Approx(4));
  CHECK(time.step() == Approx(2 + 4));
}

TEST_CASE("shard: collectives of arguments start at once, and collectives of their results follow them") {
  const ir::Graph graph = read_graph(R"(graph @g(input %x: f32[32, 16], parameter %w: f32[4, 4]) {
  %1 = all_gather %w {axis="m", ranks=4, dim=0, outer=1}
  %2 = reduce_scatter %1 {axis="n", ranks=4, dim=0, outer=1}
  %3 = contract %x, %1 {spec="ab,bc->ac"}
  output "y" %3
  output "z" %2
})");
  // The gather takes 3 messages and 192 bytes, until 2.5; the matmul of 4096 operations until 6.5, and in parallel
  // the scatter, until 5.
  const StepTime time = step_time(graph, slow(), {});
  CHECK(time.products == Approx(4));
  CHECK(time.collectives == Approx(5));
  CHECK(time.step() == Approx(6.5));
}

TEST_CASE("shard: times are no shorter for slower hardware and networks") {
  const ir::Graph graph = divided(gpt_step(1, 0.1, 0.5), "data=4,model=2", "B:data,h:model").graph;
  const DimBindings dims{{"B@data", 2}, {"T", 8}};
  const StepRates base;
  const double step = step_time(graph, base, dims).step();
  for (const double factor : {2.0, 10.0, 1000.0}) {
    StepRates rates = base;
    rates.flops /= factor;
    CHECK(step_time(graph, rates, dims).step() > step);
    rates = base;
    rates.bandwidth /= factor;
    CHECK(step_time(graph, rates, dims).step() > step);
    rates = base;
    rates.latency *= factor;
    CHECK(step_time(graph, rates, dims).step() > step);
  }
  const StepTime time = step_time(graph, base, dims);
  CHECK(time.waiting <= time.collectives);
}

TEST_CASE("shard: numbers print with three significant digits") {
  CHECK(seconds_text(0) == "0 s");
  CHECK(seconds_text(1.5) == "1.50 s");
  CHECK(seconds_text(0.0123) == "12.3 ms");
  CHECK(seconds_text(0.9999) == "1.00 s");
  CHECK(seconds_text(2e-6) == "2.00 us");
  CHECK(seconds_text(3e-10) == "0.30 ns");
  CHECK(scaled_text(12.5e9, "B/s") == "12.5 GB/s");
  CHECK(scaled_text(999.7, "B/s") == "1.00 kB/s");
  CHECK(scaled_text(594e12, "FLOP/s") == "594 TFLOP/s");
}

}  // namespace lathe::shard::test
