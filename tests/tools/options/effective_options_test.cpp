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
       }) {
    const auto refused = run_lathe(scratch, command);
    INFO(command << ": " << refused.out << refused.err);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.err, Contains(message) && Contains("[usage]"));
  }
}
