#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "tests/shard/support.h"
#include "tests/support/texts/error_label.h"

/// Graphs that cannot be sharded are errors at once, with both lines, the sizes and a hint.
namespace lathe::shard::test {

using lathe::test::error_label;

namespace {

ir::Graph read(std::string_view text) { return ir::parse_graph(text, "model.lathe"); }

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("shard: invalid meshes and splits are rejected") {
  const auto mesh = [](std::string_view text) { return error_label([&] { Mesh::parse(text); }); };
  CHECK(mesh("data=4,model=2") == "");
  for (const std::string_view text :
       {"", "data", "data=", "=4", "data=x", "data=4,", "data=4x", "data=99999999999999999999"})
    CHECK(mesh(text) == "mesh_syntax");
  for (const std::string_view text : {"data=4,data=2", "4=data", "a.b=2", "a@b=2"}) CHECK(mesh(text) != "");
  std::string many = "a0=1";
  for (std::size_t i = 1; i <= Mesh::most_axes; ++i) many += fmt::format(",a{}=1", i);
  CHECK(mesh(many) == "mesh_axis");
  for (const std::string_view text : {"data=0", "data=-2", "a=1048576,b=2"}) CHECK(mesh(text) == "mesh_ranks");
  for (const std::string_view text : {"", "B", "B:", ":data", "B:data,"})
    CHECK(error_label([&] { parse_splits(text); }) == "split_syntax");
}

TEST_CASE("shard: meshes and splits built in code match those parsed from text") {
  const Mesh mesh{{"data", 4}, {"model", 2}};
  CHECK(mesh.axes() == Mesh::parse("data=4,model=2").axes());
  CHECK(Mesh{{"data", 4}}.axes() == Mesh::parse("data=4").axes());
  CHECK(error_label([] { Mesh{{"data", 4}, {"data", 2}}; }) == "mesh_axis");
  const Dim B{"B"}, h{"h", 8}, d_k{"d_k", 64};
  const std::vector<Split> splits{{B, "data"}, {h, "model"}, {"d_ff", "model"}, {(h * d_k).named("d_model"), "data"}};
  const std::vector<Split> expected = parse_splits("B:data,h:model,d_ff:model,d_model:data");
  REQUIRE(splits.size() == expected.size());
  for (std::size_t i = 0; i < splits.size(); ++i) {
    CHECK(splits[i].dim == expected[i].dim);
    CHECK(splits[i].axis == expected[i].axis);
  }
  for (const Dim& nameless : {Dim(512), h * d_k, B * h})
    CHECK(error_label([&] { Split(nameless, "model"); }) == "split_unnamed");
}

TEST_CASE("shard: ranks of a mesh are numbered along its last axis first") {
  const Mesh mesh = Mesh::parse("data=2,model=3");
  CHECK(mesh.size() == 6);
  CHECK(mesh.index(5, 0) == 1);
  CHECK(mesh.index(5, 1) == 2);
  CHECK(mesh.group(4, 0) == std::vector<std::int64_t>{1, 4});
  CHECK(mesh.group(4, 1) == std::vector<std::int64_t>{3, 4, 5});
}

TEST_CASE("shard: unknown names are rejected, with the known ones") {
  const ir::Graph graph = read("graph @g(input %x: f32[batch, width=8]) {\n  %1 = exp %x\n  output \"y\" %1\n}");
  CHECK(holds(error_text(graph, "data=2", "bach:data"), "did you mean 'batch'"));
  CHECK(error_label(graph, "data=2", "bach:data") == "shard_name");
  CHECK(holds(error_text(graph, "data=2", "batch:model"), "its axes are data"));
  CHECK(error_label(graph, "data=2", "batch:model") == "mesh_axis");
}

TEST_CASE("shard: the error for an indivisible size gives the padded size") {
  const ir::Graph graph = read("graph @g(input %x: f32[vocab=50257, 4]) {\n  %1 = exp %x\n  output \"y\" %1\n}");
  const std::string text = error_text(graph, "model=4", "vocab:model");
  CHECK(holds(text, "[shard_divide]"));
  CHECK(holds(text, "pad it to 50260"));
}

TEST_CASE("shard: an op that needs all of a split dim is an error with both lines and the bytes") {
  const ir::Graph graph = read(R"(graph @g(input %x: f32[n=8, 4]) {
  %1 = exp %x
  %2 = slice %1 {dim=0, start=1, stop=6}
  output "y" %2
})");
  const std::string text = error_text(graph, "data=2", "n:data");
  CHECK(holds(text, "[shard_gather]"));
  CHECK(holds(text, "model.lathe:1"));
  CHECK(holds(text, "model.lathe:3"));
  CHECK(holds(text, "80 bytes"));
}

TEST_CASE("shard: one dim over two axes and two dims over one axis are rejected") {
  const ir::Graph square = read("graph @g(input %x: f32[n=8, m=8]) {\n  %1 = exp %x\n  output \"y\" %1\n}");
  CHECK(error_label(square, "data=2", "n:data,m:data") == "shard_repeat");
  const ir::Graph tied =
      read("graph @g(input %x: f32[n=8], input %y: f32[m=8]) {\n  %1 = add %x, %y\n  output \"y\" %1\n}");
  CHECK(error_label(tied, "data=2,model=2", "n:data,m:model") == "shard_axis");
  CHECK(error_label(square, "data=4,model=4", "n:data,n:model") == "shard_divide");
  CHECK(error_label(square, "data=2,model=2", "n:data,n:model") == "");
  CHECK(error_label(square, "data=2,model=2", "n:data,m:model") == "");
}

TEST_CASE("shard: states and parameters are sharded over an axis of the mesh") {
  const ir::Graph step = gpt_step(1, 0);
  for (const ShardOptions& options :
       {ShardOptions{.states = "date"}, ShardOptions{.states = {}, .parameters = "date"}})
    CHECK(error_label([&] { shard(step, Mesh::parse("data=2"), {}, options); }) == "mesh_axis");
}

TEST_CASE("shard: a split table rejects indices that are split over the same axis") {
  const ir::Graph graph = read(R"(graph @g(input %t: f32[v=8, 2], input %i: i64[n=4]) {
  %1 = gather %t, %i {dim=0}
  output "y" %1
})");
  CHECK(error_label(graph, "a=2", "v:a,n:a") == "shard_repeat");
  CHECK(error_label(graph, "a=2,b=2", "v:a,n:b") == "");
}

TEST_CASE("shard: a batch that does not divide is rejected at run time") {
  const ir::Graph step = gpt_step(1, 0);
  const Sharded sharded = divided(step, "data=4", "B:data");
  CHECK(error_label([&] { simulate(sharded, step_arguments(step, 6, 4)); }) == "mesh_divide");
}

TEST_CASE("shard: a token outside the vocabulary is an error on every mesh") {
  const ir::Graph step = gpt_step(1, 0);
  Tensors arguments = step_arguments(step, 2, 3);
  arguments.at("tokens").set_int(0, 32);
  for (const std::string splits : {"h:model", "vocab:model"})
    CHECK(error_label([&] { simulate(divided(step, "model=2", splits), arguments); }) == "index_range");
}

TEST_CASE("shard: a single process cannot run the graph of one of many") {
  const ir::Graph step = gpt_step(1, 0);
  const Sharded sharded = divided(step, "data=2", "B:data");
  Tensors arguments = step_arguments(step, 2, 3);
  CHECK(error_label([&] { ir::interpret(sharded.graph, arguments); }) == "mesh_alone");
}

}  // namespace lathe::shard::test
