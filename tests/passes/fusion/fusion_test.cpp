#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "ir/tensor/text/parser.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/fusion/text/print_regions.h"
#include "tests/passes/support.h"

/// Partitions of graphs into regions, as printed by print_regions(), one region per line: "*" marks stored values.
using namespace lathe;

namespace {

std::string plan(std::string_view text, const FusionOptions& options = {}) {
  const ir::Graph graph = prepare_for_fusion(ir::parse_graph(text));
  std::istringstream lines(print_regions(plan_fusion(graph, options), graph));
  std::string regions;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("region ")) regions += (regions.empty() ? "" : "\n") + line + ":";
    if (!line.starts_with("  ")) continue;
    std::istringstream words(line.substr(line.find('%')));
    std::string value, op;
    words >> value >> op;
    const bool stored = line.substr(0, line.find('%')).find("stored") != std::string::npos;
    regions += " " + value + ":" + op + (stored ? "*" : "");
  }
  return regions + "\n";
}

constexpr FusionOptions columns = {.most_columns = 8192}, in_place = {.scatter_in_place = true},
                        row_sums = {.scatter_in_place = true, .row_sums = true};

/// The gradient of x * w over the last dim of x[n, 8], and that of w: rows with a reduction, and a sum over the rows.
constexpr std::string_view scaled = R"(graph @g(input %x: f32[n, 8], input %dy: f32[n, 8], input %w: f32[8]) {
  %1 = mul %dy, %w
  %2 = mul %1, %x
  %3 = sum %2 {dims=[1], keepdim=true}
  %4 = sub %1, %3
  %5 = mul %dy, %x
  %6 = sum %5 {dims=[0]}
  output "dx" %4
  output "dw" %6
})";

}  // namespace

TEST_CASE("fusion: element-wise nodes and the reductions of their rows are one region") {
  CHECK(plan(R"(graph @softmax(input %x: f32[n, 8]) {
  %1 = max %x {dims=[1], keepdim=true}
  %2 = sub %x, %1
  %3 = exp %2
  %4 = sum %3 {dims=[1], keepdim=true}
  %5 = div %3, %4
  output "y" %5
})") == "region 0 rows over [n, 8]: 1 trailing dim reduced: %1:max %2:sub %3:exp %4:sum %5:div*\n");
}

TEST_CASE("fusion: bias, activation and residual fuse into the matmul, an update with the ops it reads") {
  CHECK(
      plan(R"(graph @mlp(input %x: f32[n, 8], parameter %w: f32[8, 16], parameter %b: f32[16], input %r: f32[n, 16]) {
  %1 = contract %x, %w {spec="ik,kj->ij"}
  %2 = add %1, %b
  %3 = tanh %2
  %4 = add %3, %r
  output "y" %4
})") == "region 0 product over [n, 16]: %4:contract %5:add %6:tanh %7:add*\n");
  CHECK(plan(R"(graph @momentum(parameter %p: f32[64], state %m: f32[64], input %g: f32[64]) {
  %1 = mul %m, %g
  %2 = add %1, %g
  %3 = sub %p, %2
  update %m <- %2
  update %p <- %3
})") == "region 0 rows over [64]: %3:mul %4:add* %5:sub*\n");
}

TEST_CASE("fusion: sums over rows join the pass that reads the same values") {
  CHECK(plan(scaled) ==
        "region 0 rows over [n, 8]: 1 trailing dim reduced: %3:mul %4:mul %5:sum %6:sub*\n"
        "region 1 columns over [n, 8]: %8:sum*\n");
  CHECK(plan(scaled, columns) ==
        "region 0 rows over [n, 8]: 1 trailing dim reduced: %3:mul %4:mul %5:sum %6:sub* %8:sum*\n");
}

TEST_CASE("fusion: sums over rows stay separate if the columns are unknown or the rows depend on them") {
  CHECK(plan(R"(graph @g(input %x: f32[n, m], input %dy: f32[n, m]) {
  %1 = mul %dy, %x
  %2 = sum %1 {dims=[1], keepdim=true}
  %3 = sub %x, %2
  %4 = sum %1 {dims=[0]}
  output "a" %3
  output "b" %4
})",
             columns) ==
        "region 0 rows over [n, m]: 1 trailing dim reduced: %2:mul* %3:sum %4:sub*\n"
        "region 1 columns over [n, m]: %5:sum*\n");
  CHECK(plan(R"(graph @g(input %x: f32[n, 8]) {
  %1 = sum %x {dims=[0], keepdim=true}
  %2 = sub %x, %1
  %3 = mul %2, %2
  %4 = sum %3 {dims=[1]}
  output "a" %4
})",
             columns) ==
        "region 0 columns over [n, 8]: %1:sum*\n"
        "region 1 rows over [n, 8]: 1 trailing dim reduced: %2:sub %3:mul %4:sum*\n");
}

TEST_CASE("fusion: a sum over rows that reads another one of the same pass stays separate") {
  CHECK(plan(R"(graph @g(input %x: f32[n, 8]) {
  %1 = exp %x
  %2 = sum %1 {dims=[0]}
  %3 = sum %1 {dims=[1]}
  %4 = add %1, %2
  %5 = sum %4 {dims=[0]}
  output "a" %3
  output "b" %5
})",
             columns) ==
        "region 0 rows over [n, 8]: 1 trailing dim reduced: %1:exp* %2:sum* %3:sum*\n"
        "region 1 columns over [n, 8]: %5:sum*\n");
}

TEST_CASE("fusion: scattered updates are added in place to the buffer of the remaining gradient") {
  constexpr std::string_view tied = R"(graph @g(input %i: i64[n], input %u: f32[n, 8], input %a: f32[k, 32],
                                              input %b: f32[k, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %1, %2
  %4 = mul %3, %3
  %5 = sum %4 {dims=[0, 1]}
  output "norm" %5
  output "half" %4
})";
  CHECK(plan(tied) ==
        "region 0 scatter over [32, 8]: %5:scatter_add*\n"
        "region 1 product over [32, 8]: %4:contract %6:add*\n"
        "region 2 rows over [32, 8]: 1 trailing dim reduced: %7:mul* %8:sum*\n"
        "region 3 rows over [32, 1]: 2 trailing dims reduced: %9:sum*\n");
  CHECK(plan(tied, in_place) ==
        "region 0 product over [32, 8]: %4:contract*\n"
        "region 1 scatter over [32, 8]: %5:scatter_add %6:add*\n"
        "region 2 rows over [32, 8]: 1 trailing dim reduced: %7:mul* %8:sum*\n"
        "region 3 rows over [32, 1]: 2 trailing dims reduced: %9:sum*\n");
}

TEST_CASE("fusion: updates of a table that is read twice are added in place to the remaining gradient") {
  const FusionPlan plan =
      plan_fusion(ir::parse_graph(R"(graph @g(input %i: i64[n], input %u: f32[n, 8], input %a: f32[k, 32],
                                              input %b: f32[k, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %1, %2
  %4 = exp %u
  %5 = scatter_add %i, %4 {size=32, dim=0}
  %6 = add %3, %5
  %7 = mul %6, %6
  output "y" %7
})"),
                  in_place);
  const auto base = [&](std::int32_t id) { return plan.placement[{id}].base.index; };
  CHECK(base(4) == 9);
  CHECK(base(6) == 9);
  CHECK(base(9) == 9);
}

TEST_CASE("fusion: point-wise ops sum the updates of a table row by row") {
  CHECK(plan(R"(graph @g(input %i: i64[n], input %u: f32[n, 8], input %a: f32[k, 32], input %b: f32[k, 8],
                          parameter %p: f32[32, 8], state %m: f32[32, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = exp %u
  %3 = scatter_add %i, %2 {size=32, dim=0}
  %4 = add %1, %3
  %5 = add %m, %4
  %6 = sub %p, %5
  update %m <- %5
  update %p <- %6
})",
             row_sums) ==
        "region 0 rows over [n, 8]: %7:exp*\n"
        "region 1 product over [32, 8]: %6:contract %9:add %10:add* %11:sub*\n");
  CHECK(plan(R"(graph @g(input %i: i64[n], input %u: f32[n, 8], state %m: f32[32, 8], state %v: f32[32, 8],
                          parameter %p: f32[32, 8]) {
  %1 = scatter_add %i, %u {size=32, dim=0}
  %2 = add %m, %1
  %3 = mul %1, %1
  %4 = add %v, %3
  %5 = div %2, %4
  %6 = sub %p, %5
  update %m <- %2
  update %v <- %4
  update %p <- %6
})",
             row_sums) == "region 0 rows over [32, 8]: %6:add* %7:mul %8:add* %9:div %10:sub*\n");
}

TEST_CASE(
    "fusion: a scattered sum is stored if output, reduced, transposed, or with few or unknown rows or columns") {
  const auto scattered = [](const std::string& size, const std::string& columns, const std::string& rest) {
    const std::string text =
        plan("graph @g(input %i: i64[n], input %u: f32[n, " + columns + "]) {\n  %1 = scatter_add " +
                 "%i, %u {size=" + size + ", dim=0}\n" + rest + "}",
             row_sums);
    return text.find("scatter_add") != std::string::npos;
  };
  const std::string doubled = "  %2 = add %1, %1\n  output \"y\" %2\n";
  CHECK_FALSE(scattered("16", "8", doubled));
  CHECK(scattered("15", "8", doubled));
  CHECK(scattered("n+16", "8", doubled));
  CHECK(scattered("16", "7", doubled));
  CHECK(scattered("16", "m", doubled));
  CHECK(scattered("16", "8", doubled + "  output \"x\" %1\n"));
  CHECK(scattered("16", "8", doubled + "  %3 = sum %2 {dims=[1]}\n  output \"x\" %3\n"));
  CHECK(scattered("16", "8", doubled + "  %3 = transpose %2 {dim0=0, dim1=1}\n  output \"x\" %3\n"));
}

TEST_CASE("fusion: the base of scattered updates is computed just before them") {
  CHECK(plan(R"(graph @g(input %i: i64[n], input %u: f32[n, 8], input %a: f32[k, 32], input %b: f32[k, 8]) {
  %1 = contract %a, %b {spec="kv,kd->vd"}
  %2 = contract %a, %a {spec="kv,kw->vw"}
  %3 = contract %2, %2 {spec="kv,kw->vw"}
  %4 = scatter_add %i, %u {size=32, dim=0}
  %5 = add %4, %1
  %6 = exp %5
  output "square" %3
  output "y" %6
})",
             in_place) ==
        "region 0 product over [32, 32]: %5:contract*\n"
        "region 1 product over [32, 32]: %6:contract*\n"
        "region 2 product over [32, 8]: %4:contract*\n"
        "region 3 scatter over [32, 8]: %7:scatter_add %8:add*\n"
        "region 4 rows over [32, 8]: %9:exp*\n");
}

TEST_CASE("fusion: updates are not added in place if the base has other users or the sum is an output") {
  CHECK(plan(R"(graph @g(input %i: i64[n], input %u: f32[n, 8], input %a: f32[32, 8]) {
  %1 = exp %a
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %1, %2
  %4 = mul %3, %1
  output "y" %4
})",
             in_place) ==
        "region 0 scatter over [32, 8]: %4:scatter_add*\n"
        "region 1 rows over [32, 8]: %3:exp %5:add %6:mul*\n");
  CHECK(plan(R"(graph @g(input %i: i64[n], input %u: f32[n, 8], input %a: f32[32, 8]) {
  %1 = exp %a
  %2 = scatter_add %i, %u {size=32, dim=0}
  %3 = add %1, %2
  output "y" %3
})",
             in_place) ==
        "region 0 scatter over [32, 8]: %4:scatter_add*\n"
        "region 1 rows over [32, 8]: %3:exp %5:add*\n");
}

TEST_CASE("fusion: the check of an index is fused into its user") {
  CHECK(plan(R"(graph @g(input %x: f32[n, 8], input %i: i64[n, 1]) {
  %1 = iota {shape=[8], dim=0, dtype=i64}
  %2 = gather %1, %i {dim=0}
  %3 = eq %1, %2
  %4 = constant {dtype=f32, shape=[], values=[0.0]}
  %5 = where %3, %x, %4
  output "y" %5
})") == "region 0 rows over [n, 8]: %6:where*\n");
}

TEST_CASE("fusion: rejects a graph with results that no region computes") {
  const auto refused = [](std::string_view results, const std::string& what) {
    const std::string text = std::string("graph @g(input %x: f32[n, 8], state %s: f32[n, 8]) {\n  %1 = exp %x\n") +
                             "  %2 = transpose %1 {dim0=0, dim1=1}\n" + std::string(results) + "}";
    const ir::Graph graph = ir::parse_graph(text, "g.lathe");
    CHECK_THROWS_WITH(plan_fusion(graph), Catch::Matchers::Contains(what));
    CHECK_NOTHROW(plan_fusion(prepare_for_fusion(graph)));
    CHECK_NOTHROW(plan_fusion(own_results(graph)));
  };
  refused("output \"o\" %2\n", "%3 transpose at g.lathe:3 is a result without a node of its own");
  refused("output \"o\" %x\n", "%0 input at g.lathe:1 is a result without a node of its own");
  refused("output \"o\" %1\n output \"p\" %1\n", "%2 exp at g.lathe:2 is a result without a node of its own");
  refused("output \"o\" %1\n update %s <- %1\n", "%2 exp at g.lathe:2 is a result without a node of its own");
  const ir::Graph sums = ir::parse_graph(
      "graph @g(input %x: f32[n, 8, m]) {\n  %1 = sum %x {dims=[0, 2]}\n output \"o\" %1\n}", "g.lathe");
  CHECK_THROWS_WITH(plan_fusion(sums), Catch::Matchers::Contains("%1 sum at g.lathe:2 folds trailing dims"));
}

TEST_CASE("fusion: a chain of row sums or of point-wise nodes is split into regions of bounded size") {
  const auto regions = [](int nodes, std::string_view node, int after) {
    std::string text = "graph @g(input %x: f32[n, 8]) {\n  %0 = tanh %x\n";
    for (int i = 0; i < nodes; ++i) text += fmt::format(fmt::runtime(node), i, i + 1);
    const std::string planned = plan(text + fmt::format("  output \"y\" %{}\n}}", after));
    return std::count(planned.begin(), planned.end(), '\n');
  };
  const std::string_view row_sum = "  %s{0} = sum %{0} {{dims=[1], keepdim=true}}\n  %{1} = sub %{0}, %s{0}\n";
  CHECK(regions(7, row_sum, 7) == 1);
  CHECK(regions(8, row_sum, 8) == 2);
  CHECK(regions(70, row_sum, 70) == 10);
  CHECK(regions(2000, "  %{1} = add %{0}, %x\n", 2000) == 1);
  const auto many = regions(20000, "  %{1} = add %{0}, %x\n", 20000);
  CHECK(many > 1);
  CHECK(many <= 20);
}

TEST_CASE(
    "fusion: a factor that one reduction reads is computed with it if the two fold other dims than the region") {
  // The gradient of a norm along the last dim, of which sums over images of [n, c, h] are read.
  const std::string_view text = R"(graph @g(input %x: f32[n, 6, 5], input %y: f32[n, 5, 6]) {
  %1 = exp %x
  %2 = sum %1 {dims=[2], keepdim=true}
  %3 = sub %1, %2
  %4 = transpose %3 {dim0=1, dim1=2}
  %5 = mul %4, %y
  %6 = sum %5 {dims=[1, 2]}
  output "dx" %3
  output "dw" %6
})";
  CHECK(plan(text) == R"(region 0 rows over [n, 6, 5]: 1 trailing dim reduced: %2:exp %3:sum %4:sub*
region 1 rows over [n, 5, 6]: 2 trailing dims reduced: %6:mul %7:sum*
)");
}

TEST_CASE("fusion: a mean over an image whose lines have any length does not gather windows of it") {
  const auto regions = [](std::string_view width, int windows, std::string_view dims) {
    std::string text = fmt::format("graph @g(input %x: f32[n, 40, {}]) {{\n", width);
    for (int i = 0; i < windows; ++i) {
      text += fmt::format("  %s{0} = slice %x {{dim=2, start={0}, stop={1}}}\n", i,
                          width == "30" ? std::to_string(28 + i) : fmt::format("W + {}", i));
      text += i == 0 ? "  %0 = exp %s0\n" : fmt::format("  %{0} = mul %{1}, %s{0}\n", i, i - 1);
    }
    const std::string planned =
        plan(text + fmt::format("  %y = sum %{} {{dims={}}}\n  output \"y\" %y\n}}", windows - 1, dims),
             {.most_gathers = 1});
    return std::count(planned.begin(), planned.end(), '\n');
  };
  CHECK(regions("W + 2", 1, "[1, 2]") == 1);
  CHECK(regions("W + 2", 2, "[1, 2]") == 2);
  CHECK(regions("W + 2", 3, "[2]") == 1);  // each line is a row
  CHECK(regions("30", 3, "[1, 2]") == 1);  // a vector has a load for each line that it is on
}

TEST_CASE("fusion: values of one stride, and those that a line shares, are not gathered") {
  const std::string planned =
      plan(R"(graph @g(input %x: f32[n, 10, w], input %b: f32[n, 1, 1], input %c: f32[10, 1], input %d: f32[10, 1]) {
  %1 = mul %x, %b
  %2 = mul %1, %c
  %3 = mul %2, %d
  %4 = sum %3 {dims=[1, 2]}
  output "y" %4
})",
           {.most_gathers = 1});
  CHECK(std::count(planned.begin(), planned.end(), '\n') == 1);
}

TEST_CASE("fusion: point-wise ops after the mean do not bring gathers into its region") {
  const FusionOptions options{.most_gathers = 1};
  const std::string planned = plan(R"(graph @g(input %x: f32[n, 10, w], input %y: f32[n, 12, w + 2]) {
  %1 = sum %x {dims=[1, 2], keepdim=true}
  %2 = sub %x, %1
  %3 = slice %y {dim=1, start=0, stop=10}
  %4 = slice %3 {dim=2, start=1, stop=w + 1}
  %5 = slice %y {dim=1, start=1, stop=11}
  %6 = slice %5 {dim=2, start=2, stop=w + 2}
  %7 = mul %4, %6
  %8 = mul %2, %7
  output "y" %8
})",
                                   options);
  CHECK(planned.find("%2:sum %3:sub*\n") != std::string::npos);
}

TEST_CASE("fusion: a concat of many parts becomes a tree of concats to bound the search per element") {
  const auto graph = [](int parts) {
    std::string text = "graph @g(input %x: f32[n, 8]) {\n  %0 = tanh %x\n", list;
    for (int i = 0; i < parts; ++i) {
      text += fmt::format("  %{} = {} %{}, %x\n", i + 1, i % 2 ? "mul" : "add", i);
      list += fmt::format("{}%{}", i ? ", " : "", i + 1);
    }
    return ir::parse_graph(text + fmt::format("  %y = concat {} {{dim=0}}\n  output \"y\" %y\n}}", list));
  };
  const auto widest = [](const ir::Graph& g) {
    std::size_t most = 0;
    for (const ir::Node& node : g.nodes) most = std::max(most, node.operands.size());
    return most;
  };
  CHECK(widest(prepare_for_fusion(graph(16))) == 16);
  for (const int parts : {17, 32, 300}) {
    const ir::Graph given = graph(parts), prepared = prepare_for_fusion(given);
    CHECK(widest(prepared) == 16);
    ir::test::check_same_meaning(given, prepared, ir::test::random_arguments(given, {{"n", 3}}), 0);
  }
}
