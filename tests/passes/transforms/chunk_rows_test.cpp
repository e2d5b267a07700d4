#include "passes/chunks/chunk_rows.h"

#include <catch2/catch.hpp>

#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/autodiff.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/dtypes/mixed_precision.h"
#include "tests/passes/support.h"

/// Large matmuls whose result is only reduced along columns, row by row, are split into row chunks.
using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

constexpr RowChunks two_rows{.least_rows = 2, .least_saved = 0};
constexpr RowChunks off{.on = false};

const std::string arguments =
    "graph @g(input %x: f64[7, 4], parameter %w: f64[9, 4], parameter %b: f64[9], input %t: i64[7], "
    "input %y: f64[7, 9], input %c: f64[9], state %s: f64[7, 9], input %random: i64[2]) {\n";

ir::Graph with_arguments(const std::string& lines) { return parse(arguments + lines + "}\n"); }

int count(const ir::Graph& graph, const Op& op) {
  return static_cast<int>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op == &op; }));
}

void becomes(const std::string& before, const std::string& after, const RowChunks& chunks = two_rows) {
  const ir::Graph from = with_arguments(before), to = chunk_rows(from, chunks);
  CHECK(text(to) == text(with_arguments(after)));
  check_same_meaning(from, to, random_arguments(from));
}

/// Returns the reason why the first matmul is not chunked.
std::string reason(const ir::Graph& graph, const RowChunks& chunks = two_rows) {
  const std::vector<ChunkedRegion> found = find_row_chunks(graph, chunks, true);
  CHECK(text(chunk_rows(graph, chunks)) == text(graph));
  return found.empty() ? "no product" : found.front().region.reason;
}
std::string reason(const std::string& lines) { return reason(with_arguments(lines)); }

/// A loss of logits [7, 9] (or [B, T, 9]) and targets, with a name.
struct PatternVariant {
  std::string name, lines;
};

const std::vector<PatternVariant>& variants() {
  static const std::string logits = "  %l = linear %x, %w\n";
  static const std::vector<PatternVariant> all = {
      {"cross entropy", logits + "  %loss = cross_entropy %l, %t\n"},
      {"label smoothing", logits + "  %loss = cross_entropy %l, %t {label_smoothing=0.1}\n"},
      {"ignored targets", logits + "  %loss = cross_entropy %l, %t {ignore_index=1}\n"},
      {"with a bias", "  %l = linear %x, %w, %b\n  %loss = cross_entropy %l, %t\n"},
      {"a table the other way round",
       "  %v = transpose %w {dim0=0, dim1=1}\n  %l = matmul %x, %v\n  %loss = cross_entropy %l, %t\n"},
      {"rows as columns of the product",
       "  %l = contract %w, %x {spec=\"vd,nd->vn\"}\n  %m = transpose %l {dim0=0, dim1=1}\n"
       "  %loss = cross_entropy %m, %t\n"},
      {"z-loss", logits + "  %1 = cross_entropy %l, %t\n  %2 = logsumexp %l {dim=1}\n  %3 = mul %2, %2\n"
                          "  %4 = mean %3 {dims=[0]}\n  %5 = constant {dtype=f64, shape=[], values=[0.01]}\n"
                          "  %6 = mul %4, %5\n  %loss = add %1, %6\n"},
      {"soft cap", logits + "  %5 = constant {dtype=f64, shape=[], values=[5]}\n  %1 = div %l, %5\n  %2 = tanh %1\n"
                            "  %3 = mul %2, %5\n  %loss = cross_entropy %3, %t\n"},
      {"class weights",
       logits + "  %1 = log_softmax %l {dim=1}\n  %2 = one_hot %t {classes=9, dtype=f64}\n"
                "  %3 = mul %2, %c\n  %4 = mul %1, %3\n  %5 = sum %4 {dims=[1]}\n  %6 = sum %5 {dims=[0]}\n"
                "  %7 = gather %c, %t\n  %8 = sum %7 {dims=[0]}\n  %9 = div %6, %8\n  %loss = neg %9\n"},
      {"a distribution as target", logits +
                                       "  %1 = log_softmax %l {dim=1}\n  %2 = softmax %y {dim=1}\n  %3 = mul %1, %2\n"
                                       "  %4 = sum %3 {dims=[0, 1]}\n  %loss = neg %4\n"},
      {"columns that are padding", logits + "  %1 = slice %l {dim=1, start=0, stop=7}\n"
                                            "  %loss = cross_entropy %1, %t\n"},
      {"dropout on logits",
       logits + "  %1 = dropout %l, %random {p=0.25, stream=0}\n  %loss = cross_entropy %1, %t\n"},
      {"a sum of squares", logits + "  %1 = sub %l, %y\n  %2 = mul %1, %1\n  %loss = sum %2 {dims=[0, 1]}\n"},
  };
  return all;
}

ir::Graph loss_of(const PatternVariant& variant) {
  return with_arguments(variant.lines + "  output \"loss\" %loss\n");
}

ir::Graph with_gradients(const ir::Graph& forward) {
  return differentiate(forward, {.outputs = {{"loss", ""}}, .wrt = {"x", "w", "b"}, .unused = Unused::zeros});
}

ir::Graph passed(const ir::Graph& graph, const RowChunks& chunks) {
  return run_pipeline(graph, default_pipeline(chunks)).graph;
}

/// Checks that the pass splits the graph into three chunks and preserves its meaning.
void check_chunked(const ir::Graph& graph) {
  const ir::Graph whole = passed(graph, off), chunked = passed(graph, two_rows);
  INFO(text(chunked));
  CHECK(count(chunked, ops::contract) == 3 * count(whole, ops::contract));
  check_same_meaning(whole, chunked, random_arguments(graph), 1e-13);
}

}  // namespace

TEST_CASE("chunk_rows: per-row results are concatenated, sums over rows are accumulated", "[chunks]") {
  becomes(R"(  %1 = contract %x, %w {spec="nd,vd->nv"}
  %2 = exp %1
  %3 = sum %2 {dims=[1]}
  %4 = contract %2, %w {spec="nv,vd->nd"}
  %5 = contract %x, %2 {spec="nd,nv->vd"}
  %6 = max %2 {dims=[0]}
  output "rows" %3
  output "dx" %4
  output "dw" %5
  output "most" %6
)",
          R"(  %1 = slice %x {dim=0, start=0, stop=4}
  %2 = contract %1, %w {spec="nd,vd->nv"}
  %3 = exp %2
  %4 = sum %3 {dims=[1]}
  %5 = contract %3, %w {spec="nv,vd->nd"}
  %6 = contract %1, %3 {spec="nd,nv->vd"}
  %7 = max %3 {dims=[0]}
  %8 = slice %x {dim=0, start=4, stop=7}
  %9 = contract %8, %w {spec="nd,vd->nv"}
  %10 = exp %9
  %11 = sum %10 {dims=[1]}
  %12 = contract %10, %w {spec="nv,vd->nd"}
  %13 = contract %8, %10 {spec="nd,nv->vd"}
  %14 = add %13, %6
  %15 = max %10 {dims=[0]}
  %16 = maximum %15, %7
  %17 = concat %4, %11 {dim=0}
  %18 = concat %5, %12 {dim=0}
  output "rows" %17
  output "dx" %18
  output "dw" %14
  output "most" %16
)",
          {.least_rows = 3, .least_saved = 0});
}

TEST_CASE("chunk_rows: values over rows and columns from other ops are computed per chunk", "[chunks]") {
  becomes(R"(  %1 = contract %x, %w {spec="nd,vd->nv"}
  %2 = exp %y
  %3 = mul %2, %c
  %4 = add %1, %3
  %5 = sum %4 {dims=[1]}
  output "o" %5
)",
          R"(  %1 = slice %x {dim=0, start=0, stop=4}
  %2 = contract %1, %w {spec="nd,vd->nv"}
  %3 = slice %y {dim=0, start=0, stop=4}
  %4 = exp %3
  %5 = mul %4, %c
  %6 = add %2, %5
  %7 = sum %6 {dims=[1]}
  %8 = slice %x {dim=0, start=4, stop=7}
  %9 = contract %8, %w {spec="nd,vd->nv"}
  %10 = slice %y {dim=0, start=4, stop=7}
  %11 = exp %10
  %12 = mul %11, %c
  %13 = add %9, %12
  %14 = sum %13 {dims=[1]}
  %15 = concat %7, %14 {dim=0}
  output "o" %15
)",
          {.least_rows = 3, .least_saved = 0});
}

TEST_CASE("chunk_rows: sums in bf16 that are cast to f32 accumulate in f32", "[chunks]") {
  const ir::Graph graph = parse(R"(graph @g(input %x: bf16[4, 3], parameter %w: bf16[9, 3]) {
  %1 = contract %x, %w {spec="nd,vd->nv"}
  %2 = exp %1
  %3 = contract %x, %2 {spec="nd,nv->vd"}
  %4 = cast %3 {dtype=f32}
  %5 = max %2 {dims=[1]}
  output "dw" %4
  output "most" %5
})");
  const ir::Graph chunked = chunk_rows(graph, two_rows);
  REQUIRE(count(chunked, ops::add) == 1);
  for (const Node& node : chunked.nodes)
    if (node.op == &ops::add) CHECK(node.type.dtype == f32);
}

TEST_CASE("chunk_rows: a graph without such a matmul is returned, not copied", "[chunks]") {
  ir::Graph graph = with_arguments("  %1 = exp %y\n  output \"o\" %1\n");
  const Node* const nodes = &graph.nodes[0];
  CHECK(&chunk_rows(std::move(graph), two_rows).nodes[0] == nodes);
}

TEST_CASE("chunk_rows: every variant of a loss, forward and backward", "[chunks]") {
  for (const PatternVariant& variant : variants()) {
    INFO(variant.name);
    const ir::Graph forward = loss_of(variant);
    check_chunked(forward);
    check_chunked(with_gradients(forward));
  }
}

TEST_CASE("chunk_rows: rows in several dims, merged and split, and ragged chunks", "[chunks]") {
  const auto loss = [](int batch, int length, bool merged) {
    const std::string shape = merged ? "  %m = view %l {shape=[N=" + std::to_string(batch * length) +
                                           ", 9]}\n  %u = view %t {shape=[N=" + std::to_string(batch * length) +
                                           "]}\n  %loss = cross_entropy %m, %u\n"
                                     : "  %loss = cross_entropy %l, %t\n";
    return parse("graph @g(input %x: f64[B=" + std::to_string(batch) + ", T=" + std::to_string(length) +
                 ", 4], parameter %w: f64[9, 4], parameter %b: f64[9], input %t: i64[B=" + std::to_string(batch) +
                 ", T=" + std::to_string(length) + "]) {\n  %l = linear %x, %w\n" + shape +
                 "  output \"loss\" %loss\n}");
  };
  for (const auto& [batch, length] : {std::pair{5, 3}, {1, 7}, {2, 5}, {4, 1}})
    for (const bool merged : {false, true}) {
      const ir::Graph graph = with_gradients(loss(batch, length, merged));
      INFO(batch << " times " << length << (merged ? " merged" : ""));
      const ir::Graph whole = passed(graph, off), chunked = passed(graph, two_rows);
      CHECK(count(chunked, ops::contract) >= 2 * count(whole, ops::contract));
      check_same_meaning(graph, chunked, random_arguments(graph), 1e-13);
    }
  // 7 * 2 rows in chunks of at least 4: of 3, 2 and 2 batches.
  const auto found = find_row_chunks(passed(loss(7, 2, false), off), {.least_rows = 4, .least_saved = 0});
  REQUIRE(found.size() == 1);
  CHECK(found[0].rows == 0);
  CHECK(found[0].chunks == 3);
}

TEST_CASE("chunk_rows: mixed precision", "[chunks]") {
  const ir::Graph forward = mixed_precision(parse(R"(graph @g(input %x: f32[7, 4], parameter %w: f32[9, 4],
      parameter %b: f32[9], input %t: i64[7]) {
  %l = linear %x, %w, %b
  %1 = cross_entropy %l, %t
  output "loss" %1
})"),
                                            bf16);
  check_chunked(with_gradients(forward));
}

TEST_CASE("chunk_rows: reasons that keep a matmul unchunked", "[chunks]") {
  const std::string logits =
      "  %1 = contract %x, %w {spec=\"nd,vd->nv\"}\n"
      "  %m = max %1 {dims=[1], keepdim=true}\n  %2 = sub %1, %m\n";
  const std::string rows = "  %3 = sum %2 {dims=[1]}\n  output \"o\" %3\n";
  CHECK_THAT(reason(logits + rows + "  output \"logits\" %1\n"), Contains("an output or a state's new value"));
  CHECK_THAT(reason(logits + rows + "  update %s <- %2\n"), Contains("an output or a state's new value"));
  CHECK_THAT(reason(logits + rows +
                    "  %4 = transpose %2 {dim0=0, dim1=1}\n  %5 = contiguous %4\n"
                    "  %6 = view %5 {shape=[63]}\n  %7 = sum %6 {dims=[0]}\n  output \"p\" %7\n"),
             Contains("rows do not stay apart"));
  CHECK_THAT(reason(logits + rows +
                    "  %4 = slice %2 {dim=0, start=1, stop=6}\n  %5 = sum %4 {dims=[0]}\n"
                    "  output \"p\" %5\n"),
             Contains("rows do not stay apart"));
  CHECK_THAT(reason(logits + rows +
                    "  %4 = sum %2 {dims=[0], keepdim=true}\n  %5 = div %2, %4\n"
                    "  %6 = sum %5 {dims=[1]}\n  output \"p\" %6\n"),
             Contains("needs a sum over all rows"));
  const ir::Graph attention = parse(R"(graph @g(input %q: f64[8, 4], input %k: f64[8, 4], input %v: f64[8, 4]) {
  %1 = contract %q, %k {spec="nd,vd->nv"}
  %2 = softmax %1 {dim=1}
  %3 = contract %2, %v {spec="nv,vd->nd"}
  output "o" %3
})");
  CHECK_THAT(reason(passed(attention, off)), Contains("another table"));
  CHECK_THAT(reason(logits + rows + "  %4 = contract %2, %y {spec=\"nv,mv->nm\"}\n  output \"p\" %4\n"),
             Contains("another table"));
  // A gradient that depends on the total loss needs all logits before any gradient.
  const ir::Graph squared = with_arguments(
      "  %l = linear %x, %w\n  %1 = cross_entropy %l, %t\n  %2 = mul %1, %1\n"
      "  output \"loss\" %2\n");
  CHECK_THAT(reason(passed(with_gradients(squared), off)), Contains("needs a sum over all rows"));
}

TEST_CASE("chunk_rows: thresholds on sizes", "[chunks]") {
  const std::string lines =
      "  %1 = contract %x, %w {spec=\"nd,vd->nv\"}\n  %2 = sum %1 {dims=[1]}\n"
      "  output \"o\" %2\n";
  const ir::Graph graph = with_arguments(lines);
  CHECK_THAT(reason(graph, {.least_rows = 4, .least_saved = 0}), Contains("7 rows are fewer than two chunks of 4"));
  CHECK_THAT(reason(graph, {.least_rows = 2, .least_saved = 289}), Contains("chunks would save 288 bytes"));
  CHECK(find_row_chunks(graph, {.least_rows = 2, .least_saved = 288}, true).front().region.holds());
  CHECK(find_row_chunks(graph, {}).empty());
  CHECK(find_row_chunks(graph, off, true).empty());
  const ir::Graph unknown = parse(R"(graph @g(input %x: f64[n, 4], parameter %w: f64[9, 4]) {
  %1 = contract %x, %w {spec="nd,vd->nv"}
  %2 = sum %1 {dims=[1]}
  output "o" %2
})");
  CHECK_THAT(reason(unknown), Contains("not all sizes of f64[n, 9] are known"));
}

TEST_CASE("chunk_rows: two losses in one graph", "[chunks]") {
  const ir::Graph graph = with_gradients(
      with_arguments("  %l = linear %x, %w\n  %1 = cross_entropy %l, %t\n  %v = exp %w\n  %m = linear %x, %v, %b\n"
                     "  %2 = cross_entropy %m, %t\n  %3 = add %1, %2\n  output \"loss\" %3\n"));
  check_chunked(graph);
}
