#include "passes/shard/predict/rank_scaling.h"

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/shard/explain/explain_shard.h"
#include "passes/shard/predict/product_flops.h"
#include "passes/transforms/expand.h"
#include "tests/shard/support.h"
#include "tests/support/texts/error_label.h"

/// Predicted steps on increasing numbers of processes.
namespace lathe::shard::test {

namespace {

Scaling scaling(std::string_view mesh, std::string_view splits, const ShardOptions& parts = {}) {
  return {Mesh::parse(mesh), parse_splits(splits), parts, "data", {{"B", 32}, {"T", 8}}, {}, 4096};
}

std::string label_of(const ir::Graph& graph, const Scaling& scaling) {
  return lathe::test::error_label([&] { (void)predict_scaling(graph, scaling); });
}

}  // namespace

TEST_CASE("shard: a prediction covers 1 to 4096 processes, each with its shard on the mesh") {
  const ir::Graph step = gpt_step(1, 0.1, 0.5);
  const ScalingCurve curve = predict_scaling(step, scaling("data=4,model=2", "B:data," + by_model));
  REQUIRE(curve.points.size() == 13);
  CHECK(curve.stopped.empty());
  std::int64_t ranks = 1;
  for (const ScalingPoint& point : curve.points) {
    CHECK(point.mesh.size() == ranks);
    CHECK(point.mesh[1].ranks == (ranks == 1 ? 1 : 2));
    ranks *= 2;
  }
  // Of 64 processes, 32 along data have 8 of 256 rows each.
  const Sharded sharded = divided(step, "data=32,model=2", "B:data," + by_model);
  const DimBindings dims = local_dims(sharded, {{"B", 256}, {"T", 8}});
  CHECK(dims == DimBindings{{"B@data", 8}, {"T", 8}});
  CHECK(curve.points[6].sent == bytes_sent(sharded, 0, dims));
  CHECK(curve.points[6].time.step() == step_time(sharded.graph, StepRates{}, dims).step());
  CHECK(curve.points[6].held == held_bytes(sharded.graph).all().evaluate(dims));
}

TEST_CASE("shard: one process that waits for no other has full efficiency, and more processes are not better") {
  const ir::Graph step = gpt_step(1, 0.1, 0.5);
  // Shards that no longer divide evenly stay whole and are reduced in buckets, unlike those that are scattered and
  // gathered. All parameters of this model divide evenly up to 16 processes.
  for (const auto& [parts, most] :
       {std::pair(ShardOptions{}, std::size_t{12}), {ShardOptions{.states = "data"}, 4}}) {
    const ScalingCurve curve = predict_scaling(step, scaling("data=4", "B:data", parts));
    REQUIRE(curve.points.size() == 13);
    CHECK(curve.points[0].efficiency == Approx(1));
    CHECK(curve.points[0].time.collectives == 0);
    CHECK(curve.points[0].sent == SentBytes{});
    for (std::size_t i = 1; i <= most; ++i) {
      CHECK(curve.points[i].efficiency < curve.points[i - 1].efficiency);
      CHECK(curve.points[i].time.products == Approx(curve.points[0].time.products));
      CHECK(curve.points[i].time.step() > curve.points[i - 1].time.step());
    }
  }
}

TEST_CASE("shard: efficiency counts the matmuls of the unsharded graph") {
  const ir::Graph step = gpt_step(1, 0);
  Scaling division = scaling("data=2", "B:data");
  division.dims = {{"B", 8}, {"T", 8}};
  const ScalingPoint point = predict_scaling(step, division).points[2];  // data=4: B = 16
  const double flops = product_flops(ir::expand(step), {{"B", 16}, {"T", 8}});
  CHECK(point.efficiency == Approx(flops / (point.time.step() * division.rates.flops * 4)));
}

TEST_CASE("shard: sharded parameters use less memory on more processes, until nothing divides") {
  const ir::Graph step = gpt_step(1, 0);
  const ScalingCurve whole = predict_scaling(step, scaling("data=4", "B:data"));
  const ScalingCurve parts = predict_scaling(step, scaling("data=4", "B:data", {.parameters = "data"}));
  for (std::size_t i = 1; i < parts.points.size(); ++i) {
    CHECK(parts.points[i].held <= whole.points[i].held);
    CHECK(whole.points[i].held == whole.points[0].held);
  }
  CHECK(parts.points[4].held < parts.points[2].held);
}

TEST_CASE("shard: known sizes that no longer divide end a prediction with the reason") {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(input %x: f32[n=24, 5], parameter %w: f32[5, 7]) {
  %1 = contract %x, %w {spec="ab,bc->ac"}
  %2 = sum %1 {dims=[0]}
  output "y" %2
})",
                                          "model.lathe");
  const ScalingCurve curve = predict_scaling(graph, {Mesh::parse("data=2"), {{"n", "data"}}, {}, "data", {}});
  CHECK(curve.points.size() == 4);  // 1, 2, 4, 8
  CHECK(curve.stopped.find("[shard_divide]") != std::string::npos);
}

TEST_CASE("shard: predictions need an axis of the mesh and sizes that divide") {
  const ir::Graph step = gpt_step(1, 0);
  Scaling division = scaling("data=4", "B:data");
  CHECK(label_of(step, division) == "");
  division.growing = "model";
  CHECK(label_of(step, division) == "mesh_axis");
  division = scaling("data=4", "B:data");
  division.dims = {{"B", 6}, {"T", 8}};
  CHECK(label_of(step, division) == "mesh_divide");
  division.dims = {{"B", 8}};
  CHECK(label_of(step, division) == "dim_unbound");
}

TEST_CASE("shard: the report gives the time of each collective whose sizes are known") {
  const Sharded sharded = divided(gpt_step(1, 0), "data=4,model=2", "B:data,h:model");
  const auto count_of = [](const std::string& text) {
    std::size_t found = 0;
    for (auto at = text.find(", predicted "); at != std::string::npos; at = text.find(", predicted ", at + 1))
      ++found;
    return found;
  };
  std::size_t known = 0;
  for (const Collective& each : sharded.collectives) known += each.elements.value().has_value();
  CHECK(count_of(explain(sharded)) == known);
  CHECK(known < sharded.collectives.size());
  CHECK(count_of(explain(sharded, {}, {{"B@data", 2}, {"T", 4}})) == sharded.collectives.size());
  CHECK(explain(sharded).find("predicted, not measured: a process computes 1.00 TFLOP/s, sends 12.5 GB/s, and takes "
                              "2.00 us for a message") != std::string::npos);
}

}  // namespace lathe::shard::test
