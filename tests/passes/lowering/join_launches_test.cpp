#include <catch2/catch.hpp>

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/phases.h"
#include "ir/support/error.h"
#include "passes/compile/compilation.h"
#include "passes/explain/explain_joined.h"
#include "passes/gpu/join/join_launches.h"
#include "passes/gpu/join/prefetch_plan.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "passes/memory/lifetimes.h"
#include "passes/program/text/parse_program.h"
#include "passes/program/text/print_program.h"
#include "tests/passes/support.h"

/// Launches that become phases of one kernel, and the weights that barriers prefetch.
using namespace lathe;
using Catch::Contains;
using gpu::PrefetchPlan;
using Range = PrefetchPlan::Range;

namespace {

Program joined(const std::string& graph, const LowerOptions& options = {},
               const Machine& machine = gpu_machine(gpu_info("sm_90a"))) {
  Compilation now = begin_compilation(ir::test::parse(graph), machine, {.lower = options});
  run_until(now, "collectives");
  return std::move(now.program);
}

/// A chain of GEMVs with softmaxes, of one row or of another number. The softmaxes are outputs too, so that the GEMVs
/// do not compute them.
std::string chain(const std::string& rows, std::int64_t width, int layers) {
  std::string text = fmt::format("graph @g(input %x: f32[{}, {}]", rows, width);
  for (int i = 0; i < layers; ++i) text += fmt::format(", parameter %w{}: f32[{}, {}]", i, width, width);
  text += ") {\n";
  for (int i = 0; i < layers; ++i)
    text += fmt::format("  %{0} = matmul %{1}, %w{2}\n  %{3} = softmax %{0} {{dim=1}}\n", 2 * i + 1,
                        i == 0 ? "x" : std::to_string(2 * i), i, 2 * i + 2);
  for (int i = 1; i < layers; ++i) text += fmt::format("  output \"s{0}\" %{0}\n", 2 * i);
  return text + fmt::format("  output \"y\" %{}\n}}", 2 * layers);
}

std::string internal_error(const Program& program) {
  try {
    verify_program(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("join-launches: small launches become phases, with barriers between those that depend on each other") {
  const Program program = joined(chain("1", 256, 3));
  REQUIRE(program.joined.size() == 1);
  const JoinedLaunches& all = program.joined[0];
  CHECK(all.first == 0);
  CHECK(all.end == std::ssize(program.launches));
  const kernel::Kernel& kernel = program.kernels[all.launch.kernel];
  CHECK(kernel::phases_of(kernel).size() == program.launches.size());
  // Layers share the kernels of their phases.
  CHECK(std::ssize(kernel.phase_kernels) == std::ssize(program.kernels) - 1);
  const std::string text = print_program(program);
  CHECK_THAT(text, Contains(fmt::format("joined 0: launches 0..{} by kernel {} @{}(", all.end - 1, all.launch.kernel,
                                        kernel.name)));
  CHECK(print_program(parse_program(text)) == text);
  CHECK(internal_error(program) == "no error");
  CHECK_THAT(explain_joined(program),
             Contains(fmt::format("launches 0 to {}: one launch of {}, with", all.end - 1, kernel.name)) &&
                 Contains("grid barriers, and 768 KiB of weights prefetched"));
}

TEST_CASE("join-launches: values of a kernel of phases do not share memory") {
  const Program program = joined(chain("1", 256, 3));
  for (const Lifetime& each : lifetimes(program)) {
    CHECK(each.first == 0);
    CHECK(each.last == std::ssize(program.launches) - 1);
  }
}

TEST_CASE("join-launches: launches of a loop are not joined, those before and after it are") {
  Program program = joined(chain("1", 256, 6), {.join_launches = false});
  REQUIRE(program.launches.size() == 12);
  program.loops.push_back({.first = 5, .end = 6, .trips = 1, .name = "loop"});
  gpu::join_launches(program, gpu_info("sm_90a"));
  REQUIRE(program.joined.size() == 2);
  CHECK(program.joined[0].first == 0);
  CHECK(program.joined[0].end == 5);
  CHECK(program.joined[1].first == 6);
  CHECK(program.joined[1].end == 12);
}

TEST_CASE("join-launches: identical layers share a kernel of phases") {
  Program program = joined(chain("1", 256, 8), {.join_launches = false});
  REQUIRE(program.launches.size() == 16);
  const std::size_t kernels = program.kernels.size();
  for (const int between : {4, 10})
    program.loops.push_back({.first = between, .end = between + 2, .trips = 1, .name = "loop"});
  gpu::join_launches(program, gpu_info("sm_90a"));
  REQUIRE(program.joined.size() == 3);
  CHECK(program.kernels.size() == kernels + 1);
  for (const JoinedLaunches& joined : program.joined) CHECK(joined.launch.kernel == static_cast<int>(kernels));
  CHECK(program.joined[1].launch.buffers != program.joined[2].launch.buffers);
  CHECK(internal_error(program) == "no error");
}

TEST_CASE("join-launches: not for few launches, many rows, an option, CPUs, or products by tensor cores") {
  std::string wide = chain("64", 1024, 3);
  for (auto at = wide.find("f32"); at != std::string::npos; at = wide.find("f32")) wide.replace(at, 3, "bf16");
  CHECK(joined(wide).joined.empty());
  CHECK(joined(chain("1", 256, 1)).joined.empty());
  CHECK(joined(chain("n", 256, 3)).joined.empty());
  CHECK(joined(chain("64", 2048, 3)).joined.empty());
  CHECK(joined(chain("1", 256, 3), {.join_launches = false}).joined.empty());
  CHECK(joined(chain("1", 256, 3), {.tuning = TuningChoices{.all = true}}).joined.empty());
  CHECK(joined(chain("1", 256, 3), {}, cpu_machine(unnamed_cpu())).joined.empty());
}

TEST_CASE("join-launches: the verifier finds phases that are not the launches") {
  const Program program = joined(chain("1", 256, 3));
  const auto changed = [&](const std::function<void(Program&)>& change) {
    Program other = program;
    change(other);
    return internal_error(other);
  };
  const auto fault = Contains("[program_joined]");
  CHECK_THAT(changed([](Program& p) { --p.joined[0].end; }), fault);
  CHECK_THAT(changed([](Program& p) { p.joined.push_back(p.joined[0]); }), fault);
  CHECK_THAT(changed([](Program& p) { p.launches[1].condition = SizeCondition{.size = 1, .limit = 2}; }), fault);
  CHECK_THAT(changed([](Program& p) {
               std::swap(p.joined[0].launch.buffers[p.joined[0].launch.buffers.size() - 1],
                         p.joined[0].launch.buffers[p.joined[0].launch.buffers.size() - 2]);
             }),
             Contains("[program_"));
}

TEST_CASE("prefetch plan: each element once, in order, at most a window ahead of the phase that reads it") {
  // Phases 1, 2 and 4 read 8 KiB, 40 KiB and 8 KiB of weights; the window has 16 KiB.
  PrefetchPlan plan({{1, 10, 2048, 4}, {2, 11, 10240, 4}, {4, 12, 2048, 4}}, 16 << 10);
  CHECK(plan.before(1) == std::vector<Range>{{10, 0, 2048}, {11, 0, 2048}});
  CHECK(plan.before(2) == std::vector<Range>{{11, 2048, 2048}});
  // Weights that phase 2 has read itself are not prefetched.
  CHECK(plan.before(3) == std::vector<Range>{{12, 0, 2048}});
  CHECK(plan.before(4).empty());
  CHECK(plan.before(5).empty());
}

TEST_CASE("prefetch plan: the rows in use of a cache are prefetched all at once, when there is room for them") {
  const RowsRead rows{.parameter = 0, .count = Dim("n"), .rows = 4, .stride = 4096};
  PrefetchPlan plan({{1, 10, 2048, 4}, {2, 11, 3072, 4, rows}, {3, 12, 1024, 4}}, 16 << 10);
  CHECK(plan.before(1) == std::vector<Range>{{10, 0, 2048}});
  CHECK(plan.before(2) == std::vector<Range>{{11, 0, 3072, rows}, {12, 0, 1024}});
  CHECK(plan.before(3).empty());
}

TEST_CASE(
    "prefetch plan: weights of the kernel's phases, but no tables that it looks up rows in, nor what it writes") {
  const auto prefetched = [](const std::string& graph) {
    const Program program = joined(graph);
    REQUIRE(program.joined.size() == 1);
    std::vector<std::string> names;
    const JoinedLaunches& all = program.joined[0];
    const std::string text = print_program(program);
    for (std::size_t b = 0; b < all.launch.buffers.size(); ++b)
      if (text.find(fmt::format("grid_prefetch b{}[", b)) != std::string::npos)
        names.push_back(program.buffers[static_cast<std::size_t>(all.launch.buffers[b])].name);
    std::ranges::sort(names);
    return names;
  };
  CHECK(prefetched(chain("1", 256, 3)) == std::vector<std::string>{"w0", "w1", "w2"});
  CHECK(prefetched(R"(graph @g(input %i: i64[1], parameter %table: f32[4096, 64], parameter %w: f32[64, 64],
                               parameter %u: f32[64, 64], state %s: f32[64, 64]) {
  %1 = gather %table, %i {dim=0}
  %2 = matmul %1, %w
  %3 = softmax %2 {dim=1}
  %4 = matmul %3, %u
  %5 = softmax %4 {dim=1}
  %6 = matmul %5, %s
  %7 = add %s, %s
  output "y" %6
  update %s <- %7
})") == std::vector<std::string>{"u", "w"});
}

TEST_CASE("prefetch plan: a step prefetches the rows in use of its caches, ahead of the phases that read them") {
  const std::string graph = R"(graph @g(input %x: f32[1, 256], input %at: i64[1], parameter %w: f32[256, 256],
                                       parameter %v: f32[256, 256], state %cache: f32[4, capacity, 64]) {
  %1 = matmul %x, %w
  %2 = softmax %1 {dim=1}
  %3 = matmul %2, %v
  %4 = view %3 {shape=[4, 1, 64]}
  %5 = update_rows %cache, %at, %4 {dim=1}
  %6 = slice %cache {dim=1, start=0, stop=n}
  %7 = contract %4, %6 {spec="bmk,bnk->bmn"}
  output "p" %2
  output "y" %7
  update %cache <- %5
})";
  const Program program = joined(graph);
  REQUIRE(program.joined.size() == 1);
  const auto reads = [](const Launch& launch) { return !launch.rows_read.empty(); };
  const auto launch = std::ranges::find_if(program.launches, reads);
  REQUIRE(launch != program.launches.end());
  CHECK(std::ranges::count_if(program.launches, reads) == 1);
  const RowsRead& read = launch->rows_read[0];
  CHECK(program.buffers[static_cast<std::size_t>(launch->buffers[static_cast<std::size_t>(read.parameter)])].name ==
        "cache");
  CHECK(read == RowsRead{read.parameter, 0, Dim("n") * 64, 4, Dim("capacity") * 64});
  const std::string text = print_program(program);
  CHECK_THAT(text, Contains("from 0 count 64*n rows 4 every 64*capacity"));
  CHECK(print_program(parse_program(text)) == text);
  const auto prefetch = text.find("grid_prefetch_rows");
  REQUIRE(prefetch != std::string::npos);
  CHECK(text.find("run_phase", prefetch) != std::string::npos);
}
