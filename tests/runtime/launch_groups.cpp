#include "runtime/cpu/launch_groups.h"

#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "frontend/dsl.h"
#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/programs/lower.h"

using namespace lathe;

namespace {

Program program_of(const std::string& text) {
  return lower_cpu(ir::run_pipeline(test::parse(text), ir::default_pipeline()).graph, cpu_info_for({}, {}, 256));
}

std::vector<int> sizes(const Program& program, const MemoryPlan& plan, int most = 8) {
  std::vector<int> found;
  for (const LaunchGroup& group : LaunchGrouping(program, most).groups(plan))
    found.push_back(group.last - group.first + 1);
  return found;
}

const std::string three_products = R"(graph @g(input %x: f32[1, 64], parameter %q: f32[64, 64],
    parameter %k: f32[64, 64], parameter %v: f32[64, 64], parameter %o: f32[64, 64]) {
  %1 = linear %x, %q
  %2 = linear %x, %k
  %3 = linear %x, %v
  %4 = linear %2, %o
  output "a" %1
  output "b" %3
  output "c" %4
})";

}  // namespace

TEST_CASE("launches that touch no buffer written by another form a group") {
  const Program program = program_of(three_products);
  const MemoryPlan plan = plan_memory(program, {});
  REQUIRE(program.launches.size() == 4);
  CHECK(sizes(program, plan) == std::vector<int>{3, 1});
  CHECK(sizes(program, plan, 2) == std::vector<int>{2, 2});
  CHECK(sizes(program, plan, 1) == std::vector<int>{1, 1, 1, 1});
}

TEST_CASE("launches that are skipped neither separate others nor count") {
  const Program program = program_of(three_products);
  const MemoryPlan plan = plan_memory(program, {});
  const auto sizes = [&](int most, std::vector<bool> skips) {
    std::vector<int> found;
    for (const LaunchGroup& group : LaunchGrouping(program, most).groups(plan, skips))
      found.push_back(group.last - group.first + 1);
    return found;
  };
  CHECK(sizes(8, {false, true, false, false}) == std::vector<int>{4});  // the last one reads what is not written
  CHECK(sizes(8, {false, false, true, false}) == std::vector<int>{3, 1});
  CHECK(sizes(2, {false, true, false, false}) == std::vector<int>{3, 1});
  CHECK(sizes(1, {false, true, true, true}) == std::vector<int>{4});
  CHECK(sizes(8, {true, true, true, true}) == std::vector<int>{4});
}

TEST_CASE("launches whose temporaries share memory in the arena are no group") {
  Program program = program_of(three_products);
  // Two results become temporaries at one place in the plan, as if the first one were dead.
  MemoryPlan plan = plan_memory(program, {});
  const int first = program.launches[0].buffers[0], second = program.launches[1].buffers[0];
  std::erase_if(plan.blocks, [&](const MemoryPlan::Block& block) { return block.buffer == second; });
  plan.blocks.push_back({.buffer = first, .offset = 0, .bytes = 256, .first = 0, .last = 0});
  plan.blocks.push_back({.buffer = second, .offset = 128, .bytes = 256, .first = 1, .last = 3});
  CHECK(sizes(program, plan).front() == 1);
}

namespace {

const std::string three_experts = R"(graph @g(input %x: f32[96, 64], input %o: i64[4], input %a: f32[64, 64],
    input %b: f32[64, 64], input %c: f32[64, 64]) {
  %1 = grouped_matmul %x, %o, %a, %b, %c
  output "y" %1
})";

}  // namespace

TEST_CASE("launches that write parts of one value form a group with their checks") {
  const Program program = program_of(three_experts);
  REQUIRE(program.launches.size() == 4);  // one of them clears rows outside of all segments
  CHECK(sizes(program, plan_memory(program, {}), 2) == std::vector<int>{4});
  Executable executable = compile(test::parse(three_experts), {.threads = 2});
  Tensors arguments = test::random_arguments(test::parse(three_experts), {});
  arguments.set("o", HostTensor::from_ints({4}, {0, 40, 30, 96}));
  CHECK_THROWS_WITH(executable.run(arguments), Catch::Contains("offsets do not ascend in [0, 96]"));
  arguments.set("o", HostTensor::from_ints({4}, {0, 40, 70, 96}));
  const HostTensor expected = compile(test::parse(three_experts), {.threads = 1}).run(arguments).at("y");
  for (int run = 0; run < 20; ++run) REQUIRE(executable.run(arguments).at("y").same_bits(expected));
}

TEST_CASE("a value in parts that reads another value in parts waits for it") {
  const char* const text = R"(graph @g(input %x: f32[96, 64], input %o: i64[3], input %a: f32[64, 64],
    input %b: f32[64, 64]) {
  %1 = grouped_matmul %x, %o, %a, %b
  %2 = grouped_matmul %1, %o, %a, %b
  %3 = grouped_matmul %2, %o, %a, %b
  %4 = grouped_matmul %3, %o, %a, %b
  output "y" %4
})";
  const Program program = program_of(text);
  CHECK(sizes(program, plan_memory(program, {})) == std::vector<int>{3, 3, 3, 3});
}

TEST_CASE("matmuls of the segments of one matrix form a group, each with its own buffer") {
  const char* const text = R"(graph @g(input %x: f32[96, 64], input %y: f32[96, 32], input %o: i64[4]) {
  %1 = segment_outer %x, %y, %o {segment=0}
  %2 = exp %1
  %3 = segment_outer %x, %y, %o {segment=2}
  %4 = segment_outer %x, %y, %o {segment=1}
  output "exp" %2
  output "b" %3
  output "c" %4
})";
  const Program program = program_of(text);
  CHECK(sizes(program, plan_memory(program, {})) == std::vector<int>{3, 1});
  CHECK(program.kernels.size() == 2);
  const Tensors arguments = [&] {
    Tensors made = test::random_arguments(test::parse(text), {});
    made.set("o", HostTensor::from_ints({4}, {0, 40, 70, 96}));
    return made;
  }();
  const Tensors expected = compile(test::parse(text), {.threads = 1}).run(arguments);
  Executable executable = compile(test::parse(text), {.threads = 2});
  for (int run = 0; run < 20; ++run)
    for (const auto& [name, value] : executable.run(arguments)) REQUIRE(value.same_bits(expected.at(name)));
}

TEST_CASE("launches whose output part overlaps an input of another are no group") {
  Program program = program_of(three_experts);
  MemoryPlan plan = plan_memory(program, {});
  const Launch &first = program.launches[1], &second = program.launches[2];
  const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(first.kernel)];
  int out = -1, read = -1;  // used by both, and by the first launch only
  for (std::size_t i = 0; i < first.buffers.size(); ++i) {
    if (kernel.buffers[i].access != kernel::Access::read) out = first.buffers[i];
    if (std::ranges::find(second.buffers, first.buffers[i]) == second.buffers.end()) read = first.buffers[i];
  }
  REQUIRE((out >= 0 && read >= 0 && out != read));
  // As if the value that only the first launch reads were a temporary that overlaps the result.
  plan.blocks.push_back({.buffer = out, .offset = 0, .bytes = 256, .first = 0, .last = 3});
  plan.blocks.push_back({.buffer = read, .offset = 128, .bytes = 256, .first = 0, .last = 1});
  CHECK(sizes(program, plan).size() > 1);
}

TEST_CASE("launches with checks run in order") {
  const Program program =
      program_of(R"(graph @g(input %i: i64[5], parameter %a: f32[9, 64], parameter %b: f32[9, 64]) {
  %1 = gather %a, %i {dim=0}
  %2 = gather %b, %i {dim=0}
  output "x" %1
  output "y" %2
})");
  REQUIRE(!program.launches.front().checks.empty());
  for (const int size : sizes(program, plan_memory(program, {}))) CHECK(size == 1);
}

TEST_CASE("grouped matmuls give the same bits as one thread") {
  const Graph g{"together"};
  const Dim B{"B"};
  const Tensor x = g.input("x", f32, {B, 512});
  Tensor sum = x;
  for (int layer = 0; layer < 3; ++layer) {
    Tensor joined = sum;
    for (int i = 0; i < 5; ++i)
      joined = joined + tanh(linear(sum, g.input(fmt::format("w{}.{}", layer, i), f32, {512, 512})));
    sum = joined;
  }
  g.output("y", sum);
  const Tensors arguments = test::random_arguments(g.finish(), {{"B", 3}});
  const HostTensor expected = compile(g.finish(), {.threads = 1}).run(arguments).at("y");
  for (const int threads : {2, 3, 7}) {
    Executable executable = compile(g.finish(), {.threads = threads});
    for (int run = 0; run < 20; ++run) REQUIRE(executable.run(arguments).at("y").same_bits(expected));
  }
}
