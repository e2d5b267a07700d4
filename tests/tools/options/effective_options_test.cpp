#include <catch2/catch.hpp>

#include "tests/tools/command.h"

using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

const char* graph = R"(graph @g(input %x: f32[n, 4], parameter %w: f32[4, 4]) {
  %1 = matmul %x, %w
  output "y" %1
}
)";

}  // namespace

TEST_CASE("options without an effect are refused by name", "[tools]") {
  const Scratch scratch;
  scratch.write("g.lathe", graph);
  for (const auto& [command, message] : std::initializer_list<std::pair<std::string, std::string>>{
           {"dump g.lathe --precision bf16", "--precision has no effect on the graph of the file"},
           {"dump g.lathe --target cuda", "--target has no effect on the graph of the file"},
           {"dump g.lathe --after input --dim n=2", "--dim has no effect on the graph of the file"},
           {"dump g.lathe --times", "--times has no effect on the graph of the file"},
           {"dump g.lathe --html --strides", "--strides has no effect on an HTML page"},
           {"dump g.lathe --short --no-locations", "--no-locations has no effect on --short"},
           {"dump g.lathe --after kernels --short", "--short has no effect on --after kernels"},
           {"explain g.lathe --dim n=2", "--dim has no effect on the shapes of a graph"},
           {"explain g.lathe --chunk-rows 8", "--chunk-rows has no effect on the shapes of a graph"},
           {"explain g.lathe --fusion --dim n=2", "--dim has no effect on --fusion"},
           {"explain g.lathe --fusion --chunks", "--fusion has no effect on --chunks"},
           {"explain g.lathe --fusion --all", "--all has no effect on --fusion"},
           {"explain g.lathe --memory-budget 1GiB --dim n=2 --target cuda",
            "--target has no effect on --memory-budget"},
           {"shard g.lathe --mesh data=2 --split n:data --grow data", "--grow has no effect without --predict"},
           {"shard g.lathe --mesh data=2 --split n:data --explain --no-locations", "--no-locations has no effect on"},
           {"bench --dim n=2", "--dim has no effect on the table of ops and steps of this machine"},
           {"bench --precision bf16", "--precision has no effect on the table"},
           {"bench --target x86-64-v3", "--target has no effect on the table"},
           {"bench g.lathe --full", "--full has no effect on the runs of a graph"},
           {"bench --machine --only steps", "--only has no effect on --machine"},
           {"model gpt --lr 1", "leave it out, or add --step if it is for training"},
           {"model gpt --clip 1", "--clip has no effect on gpt, a built-in model"},
           {"model gpt --total-steps 9", "--total-steps has no effect on gpt, a built-in model"},
           {"model gpt --step --freeze wte", "--freeze has no effect on gpt, a built-in model"},
           {"model llama --context 9", "--context has no effect on llama, a built-in model"},
           {"model walkthrough --layers 3", "--layers has no effect on walkthrough, a built-in model"},
           {"model gpt --part loss", "--part has no effect on gpt, a built-in model  [usage]\n  leave it out\n"},
           {"model gpt --freeze wte", "--freeze has no effect on gpt, a built-in model  [usage]\n  leave it out\n"},
           {"run g.lathe --random --interpret --threads 2", "--threads has no effect on --interpret"},
           {"run g.lathe --random --interpret --target x86-64-v3", "--target has no effect on --interpret"},
           {"run g.lathe --random --interpret --require-fused", "--require-fused has no effect on --interpret"},
           {"run g.lathe --random --dtype f64 --precision bf16", "--precision bf16 has no effect with --dtype f64"},
           {"compile g.lathe --prefix g --max n=2 --part loss", "--part has no effect on g.lathe"},
       }) {
    const auto refused = run_lathe(scratch, command);
    INFO(command << ": " << refused.out << refused.err);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err, Contains(message) && Contains("[usage]"));
  }
}

TEST_CASE("options that contradict each other, or that would be ignored, are refused with their values", "[tools]") {
  const Scratch scratch;
  scratch.write("g.lathe", graph);
  const std::string library = "compile g.lathe --prefix g --max n=2 -o library ";
  for (const auto& [command, message] : std::initializer_list<std::pair<std::string, std::string>>{
           {"run g.lathe --random --dim n=2 --dim n=3", "--dim gives n two sizes, 2 and 3  [dim_option]"},
           {"compile g.lathe --prefix g --max n=2,n=3", "--max gives n two sizes, 2 and 3  [dim_option]"},
           {"compile g.lathe --prefix g --max n", "--max n is not of the form NAME=SIZE"},
           {"run g.lathe --random --fix-dim n=2 --fix-dim n=3", "--fix-dim gives n two sizes, 2 and 3"},
           {library + "--chunk-rows 8", "--chunk-rows 8 splits products of known sizes, and n of @g is unknown"},
           {"compile g.lathe --emit=cuda --chunk-rows 8", "give their sizes, such as --fix-dim n=64"},
           {"opt g.lathe --chunk-rows 8", "give their sizes, such as --dim n=64"},
           {"dump g.lathe --after chunk-rows --chunk-rows 8", "n of @g is unknown  [chunk_rows]"},
           {library + "--target x86-64-v4,x86-64-v3", "no call would use x86-64-v4"},
           {library + "--target x86-64-v3,x86-64-v2,x86-64-v4", "no call would use x86-64-v3"},
           {library + "--target sm_89,sm_80", "no call would use cuda:sm_89"},
           {"grad g.lathe --wrt w,w", "grad: w is listed twice as a value to differentiate with respect to"},
           {"grad g.lathe --of y --of y", "grad: the output y is listed twice"},
       }) {
    const auto refused = run_lathe(scratch, command);
    INFO(command << ": " << refused.out << refused.err);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err, Contains(message));
  }
  const auto packed = run_lathe(scratch, library + "--packed-weights 16");
  CHECK(packed.status == 0);
  CHECK_THAT(packed.err, Contains("note: --packed-weights: no product reads a weight whose packed copy fits"));
  // A second derivative: the outputs of the first one are left out.
  REQUIRE(run_lathe(scratch, "grad g.lathe --wrt w -o first.lathe").status == 0);
  CHECK_THAT(run_lathe(scratch, "grad first.lathe --of grad.w --wrt w --zeros").err,
             Contains("@g already has an output grad.w") && Contains("--only"));
  CHECK(run_lathe(scratch, "grad first.lathe --of grad.w --wrt w --zeros --only -o second.lathe").status == 0);
}
