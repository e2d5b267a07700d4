#include "passes/pipeline/pipeline.h"
#include "ir/options/pass_run.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;
using Catch::StartsWith;

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

TEST_CASE("pipeline: dump_after sees the graph after each pass, disable skips passes", "[pipeline]") {
  std::vector<std::string> seen;
  PipelineOptions options;
  options.dump_after = [&](std::string_view pass, const ir::Graph& graph) {
    seen.push_back(std::string(pass) + " " + std::to_string(graph.size()));
  };
  options.disable = {"expand"};
  run_pipeline(small_graph(), parse_pipeline("canonicalize,expand,cse"), options);
  CHECK(seen == std::vector<std::string>{"input 4", "canonicalize 2", "cse 2"});
}

TEST_CASE("pipeline: a pass that runs twice is two stages", "[pipeline]") {
  const Pipeline pipeline = parse_pipeline("dce,canonicalize,expand,canonicalize,cse");
  CHECK(stage_names(pipeline) == std::vector<std::string>{"dce", "canonicalize", "expand", "canonicalize.2", "cse"});
  const auto after = [&](const std::string& stage) {
    return names_of(run_pipeline(small_graph(), up_to(stage, pipeline)).runs);
  };
  CHECK(after("canonicalize") == std::vector<std::string>{"dce", "canonicalize"});
  CHECK(after("canonicalize.2") == std::vector<std::string>{"dce", "canonicalize", "expand", "canonicalize.2"});
  CHECK_THROWS_WITH(after("canonicalize.3"), Contains("there is no pass named 'canonicalize.3'"));
}

TEST_CASE("pipeline: parse_pipeline knows every pass name, except passes that need options", "[pipeline]") {
  std::vector<std::string> refused;
  for (const Stage& stage : stages()) {
    CHECK((stage.pass == nullptr) == (stage.step != nullptr));
    if (!stage.pass) continue;
    if (stage.needs_request)
      refused.push_back(stage.name);
    else
      CHECK_NOTHROW(parse_pipeline(stage.name));
  }
  CHECK(refused == std::vector<std::string>{"dtype", "known-sizes", "shard"});
  for (const std::string& name : refused) CHECK_THROWS_WITH(parse_pipeline(name), Contains("[pass_name]"));
}

TEST_CASE("pipeline: rejects unknown names and suggests the nearest", "[pipeline]") {
  CHECK(error_text([] { parse_pipeline("canonicalise"); }) ==
        "there is no pass named 'canonicalise'  [pass_name]\n  did you mean 'canonicalize'?");
  PipelineOptions options;
  options.disable = {"dc"};
  CHECK_THAT(error_text([&] { run_pipeline(small_graph(), default_pipeline(), options); }), Contains("[pass_name]"));
}

TEST_CASE("pipeline: a defect names the pass and writes a reproducer", "[pipeline]") {
  const auto file = std::filesystem::temp_directory_path() / "lathe_pipeline_test.lathe";
  PipelineOptions options;
  options.reproducer = file.string();
  Pipeline pipeline = parse_pipeline("canonicalize,cse");
  pipeline.insert(pipeline.begin() + 1, broken_pass());
  const std::string message = internal_error([&] { run_pipeline(small_graph(), pipeline, options); });
  CHECK_THAT(message, Contains("pass break: ") && Contains("lathe opt --passes=break,cse " + file.string()));
  std::ifstream stream(file);
  std::stringstream content;
  content << stream.rdbuf();
  CHECK_THAT(content.str(), Contains("// lathe opt --passes=break,cse"));
  CHECK(parse(content.str()).size() == 2);  // the graph after canonicalize parses
  std::filesystem::remove(file);
}

TEST_CASE("compile: passes over the whole graph run first", "[pipeline]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 8], input %w: f32[8, 8], state %rng: i64[2]) {
  %1 = linear %x, %w
  %2 = dropout %1, %rng {p=0.5, stream=0}
  output "o" %2
})");
  using Part = Stage::Part;
  CHECK(passes_of({}, Machine{}, Part::whole_graph).empty());
  Compilation mixed = begin_compilation(
      graph, cpu_machine(unnamed_cpu()),
      {.low_precision = f16, .sizes = {{"n", 4}}, .evaluation = true, .shard = [](const ir::Graph& whole) {
         return whole;
       }});
  run_through(mixed, Part::whole_graph);
  CHECK(names_of(mixed.runs) == std::vector<std::string>{"mixed-f16", "known-sizes", "evaluation", "shard"});
  CHECK_THAT(ir::print(mixed.graph),
             Contains("f16[n=4, 8]") && Contains("input %x: f32[n=4, 8]") && !Contains("dropout"));
  CHECK_THAT(ir::print(requested_graph(graph, {.dtype = f64})), Contains("f64[n, 8]") && !Contains("f32"));
}

TEST_CASE("compile: every enabled stage runs once, in table order", "[pipeline]") {
  const ir::Graph graph = parse("graph @g(input %x: f32[4, 8]) {\n%1 = exp %x\noutput \"o\" %1\n}");
  const LowerOptions within{.memory = MemoryBudget{.bytes = 1 << 20}};
  for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))})
    for (const LowerOptions& options : {LowerOptions{}, within}) {
      if (options.memory && !machine.keeps_budgets) {
        CHECK_THAT(error_text([&] { compile_graph(graph, machine, {.lower = options}); }),
                   Contains("[memory_target]"));
        continue;
      }
      Compilation now = begin_compilation(graph, machine, {.lower = options});
      std::vector<std::string> expected;
      for (const Stage& stage : stages_of(machine))
        if (is_enabled(stage, now.request)) expected.push_back(stage.label);
      for (const std::string& label : expected) {
        run_until(now, label);
        CHECK(now.runs.back().name == label);
      }
      CHECK(names_of(now.runs) == expected);
      CHECK(now.plan);
      CHECK_THAT(error_text([&] { run_until(now, "shard"); }), Contains("[pass_name]"));
    }
}

TEST_CASE("compile: stages print the form they produce", "[pipeline]") {
  const ir::Graph graph = parse("graph @g(input %x: f32[4, 8]) {\n%1 = exp %x\noutput \"o\" %1\n}");
  Machine machine = cpu_machine(unnamed_cpu());
  machine.code = {{"names", "names of kernels", "#", [](const kernel::Kernel& k) { return k.name + "\n"; }}};
  Compilation now = begin_compilation(graph, machine);
  run_until(now, "memory-plan");
  CHECK_THAT(print_stage(now, "expand"), Contains("exp %x"));
  CHECK_THAT(print_stage(now, "fuse"), Contains("exp"));
  CHECK_THAT(print_stage(now, "kernels"),
             StartsWith("program @g, 1 region\n") && Contains("launch 0: kernel 0") && Contains("// kernel 0"));
  CHECK_THAT(print_stage(now, "collectives"), Contains("// no collectives"));
  CHECK_THAT(print_stage(now, "memory-plan"), Contains("arena"));
  CHECK(print_stage(now, "names") == "\n# kernel 0\n" + now.program.kernels[0].name + "\n");
}

TEST_CASE("compile: regions are available even if no kernel can be generated", "[pipeline]") {
  Machine machine = cpu_machine(unnamed_cpu());
  machine.schedules.clear();
  const ir::Graph graph = parse("graph @g(input %x: f32[n, 8]) {\n%1 = softmax %x {dim=1}\noutput \"o\" %1\n}");
  Compilation now = begin_compilation(graph, machine);
  run_until(now, "fuse");
  CHECK(now.regions.regions.size() == 1);
  CHECK(now.runs.back().name == "fuse");
  CHECK_THAT(internal_error([&] { run_until(now, "kernels"); }), Contains("no schedule for rows regions"));
}

TEST_CASE("compile: a graph of primitives starts at the passes of the target", "[pipeline]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: f32[n, 8], input %w: f32[8, 8]) {
  %1 = linear %x, %w
  %2 = sum %1 {dims=[0, 1]}
  output "o" %2
  output "x" %x
})");
  for (const Machine& machine : {cpu_machine(unnamed_cpu()), gpu_machine(gpu_info("sm_90a"))}) {
    const Program whole = compile_graph(graph, machine).program;
    const Lowered lowered = lower_graph(run_pipeline(graph, default_pipeline()).graph, machine);
    REQUIRE(lowered.program.kernels.size() == whole.kernels.size());
    for (std::size_t i = 0; i < whole.kernels.size(); ++i)
      CHECK(kernel::print(lowered.program.kernels[i]) == kernel::print(whole.kernels[i]));
    CHECK(lowered.regions.regions.size() == static_cast<std::size_t>(lowered.program.regions));
  }
}
