#include <cmath>

#include "passes/fusion/attention/attention_delta.h"

#include <catch2/catch.hpp>

#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "tests/support/graphs/pass_text.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/program_interpreter.h"

using namespace lathe;

namespace {

const std::string signature =
    "graph @g(input %w: f64[N, h=2, S, T], input %v: f64[N, h=2, T, d=3], input %few: f64[N, h=2, 5, d=3], "
    "input %drop: f64[N, h=2, S, T], input %r: f64[N, h=2, S, 1], input %square: f64[N, h=2, 2, T], input %narrow: "
    "f64[N, h=2, S, 5]) {\n";

/// The pass with all sums wanted, or none.
test::PassText dots(bool wanted = true) {
  const auto pass = [=](const ir::Graph& graph) {
    return sums_from_results(graph, [=](ir::ValueId) { return wanted; }, {.block_bytes = unnamed_cpu().l2.share()});
  };
  return {pass, signature, {{"N", 2}, {"S", 4}, {"T", 7}}, 1e-13};
}

/// The pass with conversion of factors allowed, for sums that are wider than the result or for all.
test::PassText narrow_dots(bool narrow_only) {
  const auto pass = [=](const ir::Graph& graph) {
    return sums_from_results(graph, [](ir::ValueId) { return true; },
                             {.converted = true, .narrow_only = narrow_only});
  };
  return {pass,
          "graph @g(input %w: f32[N, g=2, r=3, S, T], input %v: bf16[N, g=2, T, d=3], input %drop: f32[N, g=2, r=3, "
          "S, T], "
          "input %x: bf16[N, g=2, T, d=3]) {\n",
          {{"N", 2}, {"S", 4}, {"T", 7}},
          2e-2};
}

/// Mixed precision with dropout and shared value heads: the result is the product of `applied` with the values, its
/// gradient is that with `values`.
std::string grouped(const std::string& applied, const std::string& values) {
  return "  %1 = mul %w, %drop\n" + applied +
         R"(
  %3 = contract %2, %v {spec="abcde,abef->abcdf"}
  %4 = mul %3, %3
  %5 = contract %4, )" +
         values + R"( {spec="abcdf,abef->abcde"}
  %6 = cast %5 {dtype=f32}
  %7 = mul %6, %drop
  %8 = mul %7, %w
  %9 = sum %8 {dims=[4], keepdim=true}
  output "o" %9
)";
}

}  // namespace

TEST_CASE("delta: casts, dropout and grouped heads, where rounding may differ") {
  const std::string graph = grouped("  %2 = cast %1 {dtype=bf16}", "%v");
  for (const bool narrow_only : {false, true})
    narrow_dots(narrow_only).becomes(graph, R"(  %1 = mul %w, %drop
  %2 = cast %1 {dtype=bf16}
  %3 = contract %2, %v {spec="abcde,abef->abcdf"}
  %4 = mul %3, %3
  %5 = cast %3 {dtype=f32}
  %6 = cast %4 {dtype=f32}
  %7 = mul %5, %6
  %8 = sum %7 {dims=[4]}
  %9 = abs %8
  %10 = constant {dtype=f32, shape=[], values=[inf]}
  %11 = lt %9, %10
  %12 = constant {dtype=f32, shape=[], values=[nan]}
  %13 = where %11, %8, %12
  %14 = view %13 {shape=[N, g=2, r=3, S, 1]}
  output "o" %14
)");
  // Different values; weights without dropout; a sum that is not wider than the result.
  narrow_dots(true).stays(grouped("  %2 = cast %1 {dtype=bf16}", "%x"));
  narrow_dots(true).stays(grouped("  %2 = cast %w {dtype=bf16}", "%v"));
  test::PassText same = dots();
  same.pass = narrow_dots(true).pass;
  same.stays(R"(  %1 = contract %w, %v {spec="abcd,abde->abce"}
  %2 = mul %1, %1
  %3 = contract %2, %v {spec="abcd,abed->abce"}
  %4 = mul %3, %w
  %5 = sum %4 {dims=[3], keepdim=true}
  output "o" %5
)");
}

TEST_CASE("delta: the column sum of a softmax gradient becomes the dot of the result and its gradient") {
  dots().becomes(R"(  %1 = contract %w, %v {spec="abcd,abde->abce"}
  %2 = mul %1, %1
  %3 = contract %2, %v {spec="abcd,abed->abce"}
  %4 = mul %3, %w
  %5 = sum %4 {dims=[3], keepdim=true}
  output "o" %5
)",
                 R"(  %1 = contract %w, %v {spec="abcd,abde->abce"}
  %2 = mul %1, %1
  %3 = mul %1, %2
  %4 = sum %3 {dims=[3]}
  %5 = abs %4
  %6 = constant {dtype=f64, shape=[], values=[inf]}
  %7 = lt %5, %6
  %8 = constant {dtype=f64, shape=[], values=[nan]}
  %9 = where %7, %4, %8
  %10 = view %9 {shape=[N, h=2, S, 1]}
  output "o" %10
)");
}

TEST_CASE("delta: factors in any order, other layouts, columns not last") {
  dots().becomes(R"(  %1 = div %w, %r
  %2 = mul %1, %drop
  %3 = contract %v, %2 {spec="abcd,abec->aebd"}
  %4 = exp %3
  %5 = contract %v, %4 {spec="abcd,aebd->abec"}
  %6 = mul %5, %drop
  %7 = mul %1, %6
  %8 = sum %7 {dims=[3]}
  output "o" %8
)",
                 R"(  %1 = div %w, %r
  %2 = mul %1, %drop
  %3 = contract %v, %2 {spec="abcd,abec->aebd"}
  %4 = exp %3
  %5 = transpose %3 {dim0=1, dim1=2}
  %6 = transpose %4 {dim0=1, dim1=2}
  %7 = mul %5, %6
  %8 = sum %7 {dims=[3]}
  %9 = abs %8
  %10 = constant {dtype=f64, shape=[], values=[inf]}
  %11 = lt %9, %10
  %12 = constant {dtype=f64, shape=[], values=[nan]}
  %13 = where %11, %8, %12
  %14 = view %13 {shape=[N, h=2, S]}
  output "o" %14
)");
}

TEST_CASE("delta: a non-finite dot product gives NaN") {
  const ir::Graph graph = dots().pass(dots().parse(R"(  %1 = contract %w, %v {spec="abcd,abde->abce"}
  %2 = mul %1, %1
  %3 = contract %2, %v {spec="abcd,abed->abce"}
  %4 = mul %3, %w
  %5 = sum %4 {dims=[3], keepdim=true}
  output "o" %5
)"));
  Tensors arguments = test::random_arguments(graph, {{"N", 1}, {"S", 2}, {"T", 3}});
  arguments.at("v").set(0, std::numeric_limits<double>::infinity());
  const HostTensor found = ir::interpret(graph, arguments).at("o");
  CHECK(std::isnan(found.get(0)));
  CHECK(std::isfinite(found.get(3)));
}

TEST_CASE("delta: sums of another form are unchanged") {
  const std::string head = "  %1 = contract %w, %v {spec=\"abcd,abde->abce\"}\n  %2 = mul %1, %1\n";
  const auto sum_of = [&](const std::string& lines) { dots().stays(head + lines + "  output \"o\" %5\n"); };
  // Different weights; the weights twice; divided by the weights.
  sum_of("  %3 = contract %2, %v {spec=\"abcd,abed->abce\"}\n  %4 = mul %3, %drop\n  %5 = sum %4 {dims=[3]}\n");
  sum_of(
      "  %3 = contract %2, %v {spec=\"abcd,abed->abce\"}\n  %4 = mul %3, %w\n  %6 = mul %4, %w\n  %5 = sum %6 "
      "{dims=[3]}\n");
  sum_of("  %3 = contract %2, %v {spec=\"abcd,abed->abce\"}\n  %4 = div %3, %w\n  %5 = sum %4 {dims=[3]}\n");
  // Over rows; over columns and rows; a maximum.
  sum_of("  %3 = contract %2, %v {spec=\"abcd,abed->abce\"}\n  %4 = mul %3, %w\n  %5 = sum %4 {dims=[2]}\n");
  sum_of("  %3 = contract %2, %v {spec=\"abcd,abed->abce\"}\n  %4 = mul %3, %w\n  %5 = sum %4 {dims=[2, 3]}\n");
  sum_of("  %3 = contract %2, %v {spec=\"abcd,abed->abce\"}\n  %4 = mul %3, %w\n  %5 = max %4 {dims=[3]}\n");
}

TEST_CASE("delta: swapped heads, a gradient from another matmul and few columns are unchanged") {
  // The weights' heads and rows are swapped between the matmuls.
  dots().stays(R"(  %1 = contract %square, %v {spec="abcd,acde->abce"}
  %2 = mul %1, %1
  %3 = contract %2, %v {spec="abcd,abed->abce"}
  %4 = mul %3, %square
  %5 = sum %4 {dims=[3]}
  output "o" %5
)");
  dots().stays(R"(  %1 = contract %w, %v {spec="abcd,abde->abce"}
  %2 = contract %drop, %v {spec="abcd,abde->abce"}
  %3 = contract %2, %v {spec="abcd,abed->abce"}
  %4 = mul %3, %w
  %5 = sum %4 {dims=[3]}
  output "o" %5
  output "y" %1
)");
  dots().stays(R"(  %1 = contract %narrow, %few {spec="abcd,abde->abce"}
  %2 = mul %1, %1
  %3 = contract %2, %few {spec="abcd,abed->abce"}
  %4 = mul %3, %narrow
  %5 = sum %4 {dims=[3]}
  output "o" %5
)");
  const std::string unwanted = R"(  %1 = contract %w, %v {spec="abcd,abde->abce"}
  %2 = mul %1, %1
  %3 = contract %2, %v {spec="abcd,abed->abce"}
  %4 = mul %3, %w
  %5 = sum %4 {dims=[3], keepdim=true}
  output "o" %5
)";
  dots(false).stays(unwanted);
}

TEST_CASE("delta: sums that are outputs or new states remain separate nodes") {
  const ir::Graph graph = ir::parse_graph(R"(graph @g(input %q: f64[B, S, 8], input %v: f64[B, S, 8],
         state %m: f64[B, S]) {
  %1 = contract %q, %v {spec="abd,acd->abc"}
  %2 = max %1 {dims=[2], keepdim=true}
  %3 = sub %1, %2
  %4 = exp %3
  %5 = sum %4 {dims=[2], keepdim=true}
  %6 = div %4, %5
  %7 = contract %6, %v {spec="abc,acd->abd"}
  %8 = mul %7, %7
  %9 = contract %8, %v {spec="abd,acd->abc"}
  %10 = mul %9, %6
  %11 = sum %10 {dims=[2], keepdim=true}
  %12 = mul %6, %9
  %13 = sum %12 {dims=[2]}
  output "kept" %11
  output "dropped" %13
  update %m <- %13
})");
  const ir::Graph now = recompute_attention(prepare_for_fusion(graph),
                                            {.delta = AttentionDelta{.block_bytes = unnamed_cpu().l2.share()}});
  CHECK_NOTHROW(verify_prepared(now));
  Tensors arguments = test::random_arguments(graph, {{"B", 2}, {"S", 5}});
  const Tensors expected = ir::interpret(graph, arguments), found = ir::interpret(now, arguments);
  for (const auto& [name, value] : expected) CHECK(test::error_of(found.at(name), value) <= 1e-13);
  for (const int bits : {128, 512}) {
    const test::ProgramInterpreter program(graph, test::cpu_with(bits));
    const Tensors run = program.run(arguments);
    for (const auto& [name, value] : expected) CHECK(test::error_of(run.at(name), value) <= 1e-11);
  }
}
