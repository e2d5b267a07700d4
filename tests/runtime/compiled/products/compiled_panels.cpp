#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/program_interpreter.h"

/// Matmuls by split bf16 that process k in panels, compared with the interpreter. On a CPU without AMX, only the
/// kernel interpreter runs panels.
using namespace lathe;
using lathe::test::check;

TEST_CASE("a product in panels of k: inlined operands, epilogues, known and unknown rows") {
  // With a symbolic row count, a few rows are enough for the kernel interpreter.
  check(R"(graph @g(input %a: f32[m, 8193], input %b: f32[97, 8193], input %r: f32[m, 97]) {
  %1 = neg %a
  %2 = contract %1, %b {spec="mk,nk->mn"}
  %3 = sub %r, %2
  output "y" %3
})",
        {.sizes = {{{"m", 3}}, {{"m", 1}}, {{"m", 0}}}, .tolerance = 1e-5});
  check(R"(graph @g(input %a: f32[8300, 100], input %b: f32[97, 8300], input %r: f32[97, 100]) {
  %1 = contract %b, %a {spec="mk,kn->mn"}
  %2 = add %1, %r
  output "sums" %1
  output "y" %2
})",
        {.tolerance = 1e-5, .interpret_kernels = false});
}

/// On a CPU with AMX, the compiled program multiplies few rows by fma and many by tiles. The kernel interpreter's
/// program does so with a smaller limit.
TEST_CASE("products whose rows only a run knows") {
  for (const char* dtype : {"f32", "bf16"})
    check(fmt::format(R"(graph @g(input %x: {0}[b, t, 96], input %w: {0}[96, 64], input %r: {0}[b, t, 64]) {{
  %1 = exp %x
  %2 = contract %1, %w {{spec="btk,kn->btn"}}
  %3 = add %2, %r
  %4 = contract %3, %w {{spec="btn,kn->btk"}}
  output "y" %4
}})",
                      dtype),
          {.sizes = {{{"b", 1}, {"t", 2}},
                     {{"b", 1}, {"t", 3}},
                     {{"b", 3}, {"t", 12}},
                     {{"b", 1}, {"t", 767}},
                     {{"b", 2}, {"t", 400}},
                     {{"b", 0}, {"t", 4}}},
           .tolerance = dtype == std::string_view("f32") ? 2e-5 : 0.1});
}

TEST_CASE("panels of one matmul share their kernels and their workspaces") {
  const auto lowered = [](int k) {
    const ir::Graph graph = test::parse(fmt::format(
        "graph @g(input %a: f32[96, {0}], input %b: f32[{0}, 96]) {{\n  %1 = contract %a, %b {{spec=\"mk,kn->mn\"}}\n"
        "  output \"y\" %1\n}}",
        k));
    return test::ProgramInterpreter(graph, test::cpu_with(512, {.tiles = true})).program();
  };
  const Program three = lowered(3 * 4096), twenty = lowered(20 * 4096 - 5);
  CHECK(three.launches.size() == 10);
  CHECK(twenty.launches.size() == 61);
  CHECK(three.kernels.size() == 4);
  CHECK(twenty.kernels.size() == 4);
  CHECK(twenty.buffers.size() == three.buffers.size());
}
