#include "passes/pipeline/pipeline.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile_pipeline.h"
#include "passes/lower_cpu.h"
#include "passes/lower_gpu.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

ir::Graph small_graph() {
  return parse(R"(graph @g(input %x: f64[n]) {
  %1 = silu %x
  %2 = neg %1
  %3 = neg %2
  output "o" %3
})");
}

std::vector<std::string> names_of(const std::vector<PassRun>& runs) {
  std::vector<std::string> names;
  for (const PassRun& run : runs) names.push_back(run.name);
  return names;
}

/// A broken pass: gives the last value a type that differs from its op's.
Pass broken_pass() {
  return {"break", "makes a graph that does not verify", [](const ir::Graph& graph) {
            ir::Graph result = graph;
            result.nodes.back().type = TensorType::contiguous(f64, {7});
            return result;
          }};
}

std::string internal_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no internal error";
}

}  // namespace

TEST_CASE("pipeline: runs its passes in order and times them", "[pipeline]") {
  const auto result = run_pipeline(small_graph(), parse_pipeline("canonicalize,expand,cse"));
  CHECK(names_of(result.runs) == std::vector<std::string>{"canonicalize", "expand", "cse"});
  CHECK(result.runs[0].nodes_before == 4);
  CHECK(result.runs[0].nodes_after == 2);
  CHECK_THAT(to_string(result.runs), Contains("canonicalize") && Contains("4 -> 2 nodes"));
}

TEST_CASE("pipeline: dump-after sees the graph after each pass, disable and stop-after are honoured", "[pipeline]") {
  std::vector<std::string> seen;
  PipelineOptions options;
  options.dump_after = [&](std::string_view pass, const ir::Graph& graph) {
    seen.push_back(std::string(pass) + " " + std::to_string(graph.size()));
  };
  options.disable = {"expand"};
  options.stop_after = "cse";
  run_pipeline(small_graph(), parse_pipeline("canonicalize,expand,cse,dce"), options);
  CHECK(seen == std::vector<std::string>{"input 4", "canonicalize 2", "cse 2"});
}

TEST_CASE("pipeline: a pass that runs twice is two stages", "[pipeline]") {
  const Pipeline pipeline = parse_pipeline("dce,canonicalize,expand,canonicalize,cse");
  CHECK(stage_names(pipeline) == std::vector<std::string>{"dce", "canonicalize", "expand", "canonicalize.2", "cse"});
  const auto after = [&](const std::string& stage) {
    return names_of(run_pipeline(small_graph(), pipeline, {.stop_after = stage}).runs);
  };
  CHECK(after("canonicalize") == std::vector<std::string>{"dce", "canonicalize"});
  CHECK(after("canonicalize.2") == std::vector<std::string>{"dce", "canonicalize", "expand", "canonicalize.2"});
  CHECK_THROWS_WITH(after("canonicalize.3"), Contains("there is no pass named 'canonicalize.3'"));
}

TEST_CASE("pipeline: every pass of compilation has a name that parse_pipeline knows", "[pipeline]") {
  for (const Machine& machine :
       {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_80")), gpu_machine(gpu_info("sm_90a"))})
    for (const AttentionFusion attention : {AttentionFusion::automatic, AttentionFusion::required})
      for (const Pass& pass : compile_pipeline(machine, {.attention = attention}))
        CHECK_NOTHROW(parse_pipeline(pass.name));
}

TEST_CASE("pipeline: what a program asks of the whole graph comes first, as passes of the list", "[pipeline]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 8], input %w: f32[8, 8], state %rng: i64[2]) {
  %1 = linear %x, %w
  %2 = dropout %1, %rng {p=0.5, stream=0}
  output "o" %2
})");
  CHECK(whole_graph_pipeline({}).empty());
  std::vector<std::string> listed;
  for (const Stage& stage : whole_graph_stages()) listed.push_back(stage.name);
  CHECK(listed ==
        std::vector<std::string>{"dtype", "mixed-bf16", "mixed-f16", "known-sizes", "evaluation", "shard", "ring"});
  WholeGraph asked{.low_precision = f16, .sizes = {{"n", 4}}, .evaluation = true};
  asked.divide = [](const ir::Graph& whole) { return whole; };
  const PipelineResult mixed = run_pipeline(graph, whole_graph_pipeline(asked));
  CHECK(names_of(mixed.runs) == std::vector<std::string>{"mixed-f16", "known-sizes", "evaluation", "shard"});
  CHECK_THAT(ir::print(mixed.graph),
             Contains("f16[n=4, 8]") && Contains("input %x: f32[n=4, 8]") && !Contains("dropout"));
  const PipelineResult wide = run_pipeline(graph, whole_graph_pipeline({.dtype = f64}));
  CHECK(names_of(wide.runs) == std::vector<std::string>{"dtype"});
  CHECK_THAT(ir::print(wide.graph), Contains("f64[n, 8]") && !Contains("f32"));
}

TEST_CASE("pipeline: the stages after the passes run as they are listed, a budget's where it is kept", "[pipeline]") {
  const ir::Graph graph = parse("graph @g(input %x: f32[4, 8]) {\n%1 = exp %x\noutput \"o\" %1\n}");
  const LowerOptions within{.memory = MemoryBudget{.bytes = 1 << 20}};
  for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))}) {
    std::vector<std::string> listed;
    for (const Stage& stage : lowering_stages(machine)) listed.push_back(stage.name);
    const bool keeps = listed.front() == "rematerialize";
    CHECK(keeps == machine.keeps_budgets);
    CHECK(listed.back() == "memory-plan");
    listed.pop_back();
    const ir::Graph prepared = run_pipeline(graph, compile_pipeline(machine)).graph;
    if (keeps) {
      CHECK(names_of(lower_prepared(prepared, machine, within).stages) == listed);
      listed.erase(listed.begin());
    } else {
      CHECK_THAT(error_text([&] { lower_prepared(prepared, machine, within); }), Contains("[memory_target]"));
    }
    CHECK(names_of(lower_prepared(prepared, machine).stages) == listed);
  }
}

TEST_CASE("pipeline: regions are known where no kernel can be made of them", "[pipeline]") {
  Machine machine = cpu_machine(unnamed_cpu());
  machine.schedules.clear();
  const ir::Graph graph = parse("graph @g(input %x: f32[n, 8]) {\n%1 = softmax %x {dim=1}\noutput \"o\" %1\n}");
  const Fused fused = fuse_regions(run_pipeline(graph, compile_pipeline(machine)).graph, machine);
  CHECK(fused.regions.regions.size() == 1);
  CHECK(names_of(fused.stages) == std::vector<std::string>{"fuse"});
  CHECK_THAT(internal_error([&] { lower_regions(fused, machine); }), Contains("no schedule for rows regions"));
}

TEST_CASE("pipeline: compilation ends in a graph that lower_prepared takes as lower makes it", "[pipeline]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 8], input %w: f32[8, 8]) {
  %1 = linear %x, %w
  %2 = sum %1 {dims=[0, 1]}
  output "o" %2
  output "x" %x
})");
  for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))}) {
    const ir::Graph prepared = run_pipeline(graph, compile_pipeline(machine)).graph;
    const Program whole = lower(run_pipeline(graph, default_pipeline()).graph, machine);
    const Lowered lowered = lower_prepared(prepared, machine);
    REQUIRE(lowered.program.kernels.size() == whole.kernels.size());
    for (std::size_t i = 0; i < whole.kernels.size(); ++i)
      CHECK(kernel::print(lowered.program.kernels[i]) == kernel::print(whole.kernels[i]));
    CHECK(lowered.regions.regions.size() == static_cast<std::size_t>(lowered.program.regions));
  }
}

TEST_CASE("pipeline: a pass can be put at its place", "[pipeline]") {
  Pipeline pipeline = default_pipeline();
  insert_before(pipeline, "expand", {"fuse-attention", "", [](const ir::Graph& graph) { return graph; }});
  std::vector<std::string> names;
  for (const Pass& pass : pipeline) names.push_back(pass.name);
  CHECK(names == std::vector<std::string>{"dce", "canonicalize", "fuse-attention", "expand", "decompose-complex",
                                          "constant-fold", "canonicalize", "cse", "chunk-rows"});
}

TEST_CASE("pipeline: unknown names are refused, with the nearest", "[pipeline]") {
  CHECK(error_text([] { parse_pipeline("canonicalise"); }) ==
        "there is no pass named 'canonicalise'  [pass_name]\n  did you mean 'canonicalize'?");
  PipelineOptions options;
  options.stop_after = "fusion";
  CHECK_THAT(error_text([&] { run_pipeline(small_graph(), default_pipeline(), options); }), Contains("[pass_name]"));
  options = {};
  options.disable = {"dc"};
  CHECK_THAT(error_text([&] { run_pipeline(small_graph(), default_pipeline(), options); }), Contains("[pass_name]"));
}

TEST_CASE("pipeline: a defect names the pass and leaves what repeats it", "[pipeline]") {
  const auto file = std::filesystem::temp_directory_path() / "lathe_pipeline_test.lathe";
  PipelineOptions options;
  options.reproducer = file.string();
  Pipeline pipeline = parse_pipeline("canonicalize,cse");
  insert_before(pipeline, "cse", broken_pass());
  const std::string message = internal_error([&] { run_pipeline(small_graph(), pipeline, options); });
  CHECK_THAT(message, Contains("pass break: ") && Contains("lathe opt --passes=break,cse " + file.string()));
  std::ifstream stream(file);
  std::stringstream content;
  content << stream.rdbuf();
  CHECK_THAT(content.str(), Contains("// lathe opt --passes=break,cse"));
  CHECK(parse(content.str()).size() == 2);  // the graph after canonicalize parses
  std::filesystem::remove(file);
}
