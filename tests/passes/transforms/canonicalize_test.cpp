#include "passes/transforms/canonicalize.h"

#include <catch2/catch.hpp>
#include <random>

#include "ir/ops/functional/functional.h"
#include "ir/support/error.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/expand.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

constexpr std::string_view signature =
    "graph @g(input %x: f64[a, b, 6], input %y: f64[a, b, 6], input %z: f64[a, 2], input %w: f64[a, 4], input %m: "
    "bool[a, b, 6], "
    "input %i: i64[a], input %h: f32[a])";
const DimBindings dims = {{"a", 2}, {"b", 3}};

/// Returns the lines of a graph's body, without indentation.
std::string body(const ir::Graph& graph) {
  const std::string whole = text(graph);
  const auto from = whole.find("{\n") + 2;
  std::string result;
  for (std::size_t at = from; at < whole.size() && whole[at] == ' ';) {
    const auto end = whole.find('\n', at);
    result += whole.substr(at + 2, end - at - 1);
    at = end + 1;
  }
  return result;
}

ir::Graph graph_of(std::string_view lines) {
  return parse(std::string(signature) + " {\n" + std::string(lines) + "}");
}

/// Returns the canonicalized body of `lines`. Checks that the results are unchanged.
std::string canonical_body(std::string_view lines) {
  const ir::Graph before = graph_of(lines);
  const ir::Graph after = canonicalize(before);
  INFO(lines);
  check_same_meaning(before, after, random_arguments(before, dims), 0);
  return body(after);
}

/// Checks before -> after.
void becomes(std::string_view before, std::string_view after) { CHECK(canonical_body(before) == after); }
/// Checks that no rule fires.
void stays(std::string_view lines) {
  const std::string now = canonical_body(lines);
  CHECK(now == body(graph_of(lines)));
}

}  // namespace

TEST_CASE("canonicalize: views", "[canonicalize]") {
  becomes("%1 = transpose %x {dim0=0, dim1=1}\n%2 = transpose %1 {dim0=1, dim1=0}\noutput \"o\" %2\n",
          "output \"o\" %x\n");
  becomes("%1 = permute %x {dims=[1, 2, 0]}\n%2 = permute %1 {dims=[0, 2, 1]}\noutput \"o\" %2\n",
          "%1 = transpose %x {dim0=0, dim1=1} : f64[b, a, 6] strided\noutput \"o\" %1\n");
  becomes("%1 = view %x {shape=[a*b, 6]}\n%2 = view %1 {shape=[a, b, 2, 3]}\noutput \"o\" %2\n",
          "%1 = view %x {shape=[a, b, 2, 3]} : f64[a, b, 2, 3]\noutput \"o\" %1\n");
  becomes("%1 = view %x {shape=[a*b, 6]}\n%2 = view %1 {shape=[a, b, 6]}\noutput \"o\" %2\n", "output \"o\" %x\n");
  becomes("%1 = unsqueeze %x {dim=1}\n%2 = squeeze %1 {dim=1}\noutput \"o\" %2\n", "output \"o\" %x\n");
  becomes("%1 = contiguous %x\noutput \"o\" %1\n", "output \"o\" %x\n");
  becomes(
      "%1 = unsqueeze %z {dim=1}\n%2 = expand %1 {shape=[a, b, 2]}\n%3 = expand %2 {shape=[3, a, b, 2]}\noutput "
      "\"o\" %3\n",
      "%1 = unsqueeze %z {dim=1} : f64[a, 1, 2]\n"
      "%2 = expand %1 {shape=[3, a, b, 2]} : f64[3, a, b, 2] strided\noutput \"o\" %2\n");
  becomes("%1 = slice %x {dim=2, start=1, stop=6}\n%2 = slice %1 {dim=2, start=1, stop=4}\noutput \"o\" %2\n",
          "%1 = slice %x {dim=2, start=2, stop=5} : f64[a, b, 3] strided\noutput \"o\" %1\n");
  becomes("%1 = slice %x {dim=1, start=0, stop=b}\noutput \"o\" %1\n", "output \"o\" %x\n");
  becomes(
      "%1 = constant {dtype=f64, shape=[], values=[3.0]}\n%2 = expand %1 {shape=[a, b, 6]}\n%3 = mul %x, %2\noutput "
      "\"o\" %3\n",
      "%1 = constant {dtype=f64, shape=[], values=[3.0]} : f64[]\n%2 = mul %x, %1 : f64[a, b, 6]\noutput \"o\" %2\n");
}

TEST_CASE("canonicalize: views that are unchanged", "[canonicalize]") {
  stays("%1 = transpose %x {dim0=0, dim1=1}\n%2 = exp %1\noutput \"o\" %2\n");
  // The first reshape copies, so both are not a single view.
  stays("%1 = transpose %x {dim0=0, dim1=1}\n%2 = contiguous %1\n%3 = view %2 {shape=[b*a, 6]}\noutput \"o\" %3\n");
  // The expand determines the shape of the result.
  stays("%1 = expand %z {shape=[3, a, 2]}\n%2 = mul %1, %z\noutput \"o\" %2\n");
  stays("%1 = slice %x {dim=2, start=0, stop=5}\noutput \"o\" %1\n");
  stays("%1 = slice %x {dim=2, start=0, stop=6, step=2}\noutput \"o\" %1\n");
  // Other dims.
  stays("%1 = slice %x {dim=2, start=0, stop=5}\n%2 = slice %1 {dim=0, start=0, stop=1}\noutput \"o\" %2\n");
}

TEST_CASE("canonicalize: a view of changed strides gets a copy", "[canonicalize]") {
  // The multiplication by one made a contiguous copy of the transposed tensor, which the view needs.
  becomes(
      "%1 = transpose %x {dim0=0, dim1=1}\n%2 = constant {dtype=f64, shape=[], values=[1.0]}\n%3 = mul %1, %2\n"
      "%4 = view %3 {shape=[b*a, 6]}\noutput \"o\" %4\n",
      "%1 = transpose %x {dim0=0, dim1=1} : f64[b, a, 6] strided\n%2 = contiguous %1 : f64[b, a, 6]\n"
      "%3 = view %2 {shape=[a*b, 6]} : f64[a*b, 6]\noutput \"o\" %3\n");
}

TEST_CASE("canonicalize: algebra", "[canonicalize]") {
  const auto with = [](double number, std::string_view line) {
    return "%c = constant {dtype=f64, shape=[], values=[" +
           std::string(number == 0 && std::signbit(number) ? "-0.0" : std::to_string(number)) + "]}\n" +
           std::string(line) + "\noutput \"o\" %1\n";
  };
  const std::string only_x = "output \"o\" %x\n";
  becomes(with(-0.0, "%1 = add %x, %c"), only_x);
  becomes(with(-0.0, "%1 = add %c, %x"), only_x);
  becomes(with(0, "%1 = sub %x, %c"), only_x);
  becomes(with(1, "%1 = mul %c, %x"), only_x);
  becomes(with(1, "%1 = div %x, %c"), only_x);
  becomes(with(-1, "%1 = mul %x, %c"), "%1 = neg %x : f64[a, b, 6]\noutput \"o\" %1\n");
  becomes(with(2, "%1 = pow %x, %c"), "%1 = mul %x, %x : f64[a, b, 6]\noutput \"o\" %1\n");
  becomes("%1 = neg %x\n%2 = neg %1\noutput \"o\" %2\n", only_x);
  becomes("%1 = neg %x\n%2 = sub %y, %1\noutput \"o\" %2\n", "%1 = add %y, %x : f64[a, b, 6]\noutput \"o\" %1\n");
  becomes("%1 = neg %x\n%2 = add %1, %y\noutput \"o\" %2\n", "%1 = sub %y, %x : f64[a, b, 6]\noutput \"o\" %1\n");
  becomes("%1 = neg %x\n%2 = neg %y\n%3 = mul %1, %2\noutput \"o\" %3\n",
          "%1 = mul %x, %y : f64[a, b, 6]\noutput \"o\" %1\n");
  becomes("%1 = cast %h {dtype=f64}\n%2 = cast %1 {dtype=bf16}\noutput \"o\" %2\n",
          "%1 = cast %h {dtype=bf16} : bf16[a]\noutput \"o\" %1\n");
  becomes("%1 = cast %h {dtype=f64}\n%2 = cast %1 {dtype=f32}\noutput \"o\" %2\n", "output \"o\" %h\n");
  becomes("%1 = where %m, %x, %x\noutput \"o\" %1\n", only_x);
  becomes("%1 = logical_not %m\n%2 = where %1, %x, %y\noutput \"o\" %2\n",
          "%1 = where %m, %y, %x : f64[a, b, 6]\noutput \"o\" %1\n");
  becomes("%1 = eq %x, %y\n%2 = logical_not %1\noutput \"o\" %2\n",
          "%1 = ne %x, %y : bool[a, b, 6]\noutput \"o\" %1\n");
  becomes("%1 = maximum %x, %x\noutput \"o\" %1\n", only_x);
  becomes("%1 = unsqueeze %z {dim=1}\n%2 = max %1 {dims=[1], keepdim=true}\noutput \"o\" %2\n",
          "%1 = unsqueeze %z {dim=1} : f64[a, 1, 2]\noutput \"o\" %1\n");
  becomes("%1 = constant {dtype=i64, shape=[], values=[0.0]}\n%2 = add %i, %1\noutput \"o\" %2\n",
          "output \"o\" %i\n");
}

TEST_CASE("canonicalize: algebra that is unchanged", "[canonicalize]") {
  const auto constant = [](std::string_view value) {
    return "%1 = constant {dtype=f64, shape=[], values=[" + std::string(value) + "]}\n";
  };
  stays(constant("0.0") + "%2 = add %x, %1\noutput \"o\" %2\n");                   // -0.0 + 0.0 is 0.0
  stays(constant("-0.0") + "%2 = sub %x, %1\noutput \"o\" %2\n");                  // -0.0 - -0.0 is 0.0
  stays(constant("0.0") + "%2 = mul %x, %1\noutput \"o\" %2\n");                   // NaN * 0 is NaN
  stays(constant("0.0") + "%2 = sub %1, %x\noutput \"o\" %2\n");                   // not -x if x is 0
  stays(constant("0.5") + "%2 = pow %x, %1\noutput \"o\" %2\n");                   // pow(-inf, 0.5) is inf
  stays("%1 = cast %x {dtype=f32}\n%2 = cast %1 {dtype=f64}\noutput \"o\" %2\n");  // rounds
  stays("%1 = cast %x {dtype=i64}\n%2 = cast %1 {dtype=f64}\noutput \"o\" %2\n");
  stays("%1 = lt %x, %y\n%2 = logical_not %1\noutput \"o\" %2\n");  // NaN is neither less nor greater
  stays("%1 = sub %x, %y\n%2 = neg %1\noutput \"o\" %2\n");         // x - x is 0, not -0
  stays("%1 = div %x, %x\noutput \"o\" %1\n");
  // The negation of the smallest integer is itself: -x / -2 is 2^62, x / 2 is -2^62.
  stays("%1 = neg %i\n%2 = abs %i\n%3 = neg %2\n%4 = div %1, %3\noutput \"o\" %4\n");
  stays("%1 = sub %x, %x\noutput \"o\" %1\n");
  // Removing the one would lose the broadcast.
  stays("%1 = constant {dtype=f64, shape=[3, 1, 1, 1], values=[1.0]}\n%2 = mul %x, %1\noutput \"o\" %2\n");
}

namespace {

/// A graph of values whose sizes are equal by run-time checks: each dim is 4, m, n or 1.
ir::Graph graph_with_checked_sizes(std::mt19937& random) {
  GraphBuilder b("g");
  b.argument(*find_op("input"), "sizes", f64, Shape({Dim("m"), Dim("n")}));
  std::vector<Value> values;
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const Dim sizes[] = {Dim(4), Dim("m"), Dim("n"), Dim(1)};
  for (int i = 0; i < 4; ++i)
    values.push_back(
        b.argument(*find_op("input"), "x" + std::to_string(i), f64, Shape({sizes[pick(4)], sizes[pick(4)]})));
  const Value condition = b.argument(*find_op("input"), "c", boolean, Shape({sizes[pick(4)]}));
  const auto any = [&] { return values[pick(values.size())]; };
  for (int i = 0; i < 8; ++i) try {
      switch (pick(7)) {
        case 0: values.push_back(neg(any())); break;
        case 1: values.push_back(expand(any(), Shape({sizes[pick(3)], sizes[pick(3)]}))); break;
        case 2: values.push_back(add(any(), any())); break;
        case 3: values.push_back(mul(any(), any())); break;
        case 4: values.push_back(sub(any(), any())); break;
        case 5: values.push_back(where(logical_not(condition), any(), any())); break;
        case 6: values.push_back(maximum(any(), any())); break;
      }
    } catch (const UserError&) {  // expands a dim that is known not to be 1
    }
  b.output("o", values.back());
  return b.finish();
}

}  // namespace

TEST_CASE("canonicalize: the result keeps its own size if two sizes are equal only by a check", "[canonicalize]") {
  const std::string head =
      "graph @g(input %x: f64[4, m], input %y: f64[m, m], input %p: f64[n], input %q: f64[m], input %c: bool[]) {\n";
  const auto stays_as = [&](const std::string& lines) {
    const ir::Graph before = parse(head + lines + "}"), after = canonicalize(before);
    INFO(lines);
    check_same_meaning(before, after, random_arguments(before, {{"m", 4}, {"n", 4}}), 0);
    const std::string now = body(after), then = body(before);
    CHECK(now.substr(0, now.find("check")) == then.substr(0, then.find("check")));
  };
  stays_as("%1 = expand %x {shape=[m, m]}\n%2 = add %1, %y\noutput \"o\" %2\n");
  stays_as("%1 = expand %x {shape=[m, m]}\n%2 = add %1, %1\noutput \"o\" %2\n");
  stays_as("%1 = neg %p\n%2 = add %1, %q\noutput \"o\" %2\n");
  stays_as("%1 = logical_not %c\n%2 = where %1, %p, %q\noutput \"o\" %2\n");
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    const ir::Graph before = graph_with_checked_sizes(random);
    CAPTURE(text(before));
    const ir::Graph after = canonicalize(before);
    CHECK(after[after.outputs[0].value].type.shape == before[before.outputs[0].value].type.shape);
    const Tensors arguments = random_arguments(before, {{"m", 4}, {"n", 4}});
    check_same_meaning(before, after, arguments, 0);
    check_same_meaning(before, run_pipeline(before, default_pipeline()).graph, arguments, 0);
  }
}

TEST_CASE("canonicalize: a failing check refers to the op of the source program", "[canonicalize]") {
  const ir::Graph before = parse(
      "graph @g(input %x: f64[4, m], input %y: f64[m, m]) {\n%1 = expand %x {shape=[m, m]}\n"
      "%2 = add %1, %y\noutput \"o\" %2\n}");
  const ir::Graph after = canonicalize(before);
  REQUIRE(!after.checks.empty());
  CHECK(after.checks[0].label == "expand_size");
}

TEST_CASE("canonicalize: joins", "[canonicalize]") {
  const std::string concat = "%1 = concat %z, %w {dim=1} : f64[a, 6]\noutput \"o\" %1\n";
  becomes(
      "%1 = pad %z {dim=1, low=0, high=4}\n%2 = pad %w {dim=1, low=2, high=0}\n%3 = add %1, %2\noutput \"o\" %3\n",
      concat);
  becomes(
      "%1 = pad %z {dim=1, low=0, high=4}\n%2 = pad %w {dim=1, low=2, high=0}\n%3 = add %2, %1\noutput \"o\" %3\n",
      concat);
  becomes(
      "%1 = pad %z {dim=1, low=0, high=6}\n%2 = pad %w {dim=1, low=2, high=2}\n%3 = pad %z {dim=1, low=6, high=0}\n"
      "%4 = add %3, %2\n%5 = add %4, %1\noutput \"o\" %5\n",
      "%1 = concat %z, %w, %z {dim=1} : f64[a, 8]\noutput \"o\" %1\n");
  becomes("%1 = pad %z {dim=0, low=0, high=0}\noutput \"o\" %1\n", "output \"o\" %z\n");
  becomes("%1 = pad %z {dim=1, low=1, high=0}\n%2 = pad %1 {dim=1, low=0, high=b}\noutput \"o\" %2\n",
          "%1 = pad %z {dim=1, low=1, high=b} : f64[a, b + 3]\noutput \"o\" %1\n");
  becomes("%1 = concat %z, %w {dim=1}\n%2 = slice %1 {dim=1, start=2, stop=6}\noutput \"o\" %2\n",
          "output \"o\" %w\n");
  becomes("%1 = concat %z, %w {dim=1}\n%2 = slice %1 {dim=1, start=3, stop=5}\noutput \"o\" %2\n",
          "%1 = slice %w {dim=1, start=1, stop=3} : f64[a, 2] strided\noutput \"o\" %1\n");
  becomes("%1 = pad %z {dim=1, low=b, high=1}\n%2 = slice %1 {dim=1, start=b, stop=b + 2}\noutput \"o\" %2\n",
          "output \"o\" %z\n");
  becomes(
      "%1 = slice %w {dim=1, start=0, stop=1}\n%2 = slice %w {dim=1, start=1, stop=4}\n%3 = concat %1, %2 {dim=1}\n"
      "output \"o\" %3\n",
      "output \"o\" %w\n");
}

TEST_CASE("canonicalize: joins that are unchanged", "[canonicalize]") {
  // Pads that overlap, leave a gap, or are along different dims.
  stays("%1 = pad %z {dim=1, low=0, high=3}\n%2 = pad %w {dim=1, low=1, high=0}\n%3 = add %1, %2\noutput \"o\" %3\n");
  stays("%1 = pad %z {dim=1, low=0, high=5}\n%2 = pad %w {dim=1, low=3, high=0}\n%3 = add %1, %2\noutput \"o\" %3\n");
  stays(
      "%1 = pad %z {dim=1, low=0, high=2}\n%2 = pad %z {dim=1, low=2, high=0}\n%3 = add %1, %w\n%4 = add %3, "
      "%2\noutput \"o\" %4\n");
  // A slice across the boundary, and slices in another order.
  stays("%1 = concat %z, %w {dim=1}\n%2 = slice %1 {dim=1, start=1, stop=3}\noutput \"o\" %2\n");
  stays(
      "%1 = slice %w {dim=1, start=2, stop=4}\n%2 = slice %w {dim=1, start=0, stop=2}\n%3 = concat %1, %2 {dim=1}\n"
      "output \"o\" %3\n");
}

TEST_CASE("canonicalize: contractions", "[canonicalize]") {
  const std::string product = "%1 = contract %x, %y {spec=\"abc,adc->abd\"}\n";
  becomes("%1 = transpose %y {dim0=1, dim1=2}\n%2 = contract %x, %1 {spec=\"bik,bkj->bij\"}\noutput \"o\" %2\n",
          "%1 = contract %x, %y {spec=\"abc,adc->abd\"} : f64[a, b, b]\noutput \"o\" %1\n");
  const std::string transposed = "%1 = contract %x, %y {spec=\"abc,adc->bad\"} : f64[b, a, b]\n";
  becomes(product + "%2 = permute %1 {dims=[1, 0, 2]}\n%3 = contiguous %2\noutput \"o\" %3\n",
          transposed + "output \"o\" %1\n");
  becomes(product + "%2 = transpose %1 {dim0=0, dim1=1}\n%3 = exp %2\noutput \"o\" %3\noutput \"p\" %2\n",
          transposed + "%2 = exp %1 : f64[b, a, b]\noutput \"o\" %2\noutput \"p\" %1\n");
}

TEST_CASE("canonicalize: flips become the outermost views, and two of a dim cancel", "[canonicalize]") {
  becomes("%1 = flip %x {dim=2}\n%2 = flip %1 {dim=-1}\noutput \"o\" %2\n", "output \"o\" %x\n");
  becomes("%1 = flip %z {dim=1}\n%2 = unsqueeze %1 {dim=1}\n%3 = expand %2 {shape=[3, a, b, 2]}\noutput \"o\" %3\n",
          "%1 = unsqueeze %z {dim=1} : f64[a, 1, 2]\n%2 = expand %1 {shape=[3, a, b, 2]} : f64[3, a, b, 2] strided\n"
          "%3 = flip %2 {dim=3} : f64[3, a, b, 2] strided\noutput \"o\" %3\n");
  stays("%1 = flip %x {dim=2}\n%2 = flip %1 {dim=1}\noutput \"o\" %2\n");
}

TEST_CASE("canonicalize: a matmul reverses windows instead of what they are multiplied by", "[canonicalize]") {
  const std::string windows = "%1 = unfold %w {dim=1, size=2}\n%2 = flip %z {dim=1}\n";
  becomes(windows + "%3 = contract %1, %2 {spec=\"axu,bu->xab\"}\noutput \"o\" %3\n",
          "%1 = unfold %w {dim=1, size=2} : f64[a, 3, 2] strided\n%2 = flip %1 {dim=2} : f64[a, 3, 2] strided\n"
          "%3 = contract %2, %z {spec=\"abc,dc->bad\"} : f64[3, a, a]\noutput \"o\" %3\n");
  const auto keeps = [](const std::string& lines) {
    return canonical_body(lines).find("flip %z") != std::string::npos;
  };
  // A dim of the result, no windows, and windows on both sides.
  CHECK(
      keeps("%1 = unfold %w {dim=1, size=2}\n%2 = flip %z {dim=0}\n%3 = contract %1, %2 {spec=\"axu,bu->xab\"}\n"
            "output \"o\" %3\n"));
  CHECK(keeps("%1 = flip %z {dim=1}\n%2 = contract %z, %1 {spec=\"au,bu->ab\"}\noutput \"o\" %2\n"));
  const std::string both = canonical_body(
      "%1 = unfold %w {dim=1, size=2}\n%2 = flip %1 {dim=2}\n%3 = contract %1, %2 "
      "{spec=\"axu,byu->xayb\"}\noutput \"o\" %3\n");
  CHECK(both.find("contract %1, %2") != std::string::npos);
}

TEST_CASE("canonicalize: a matmul contracts both dims of a computed operand that a view merges", "[canonicalize]") {
  const std::string computed = "%1 = view %x {shape=[a, b, 3, 2]}\n%2 = exp %1\n";
  const std::string product = canonical_body(computed +
                                             "%3 = view %2 {shape=[a, b, 6]}\n%4 = contract %y, %3 "
                                             "{spec=\"abk,ack->abc\"}\noutput \"o\" %4\n");
  CHECK(product.find("spec=\"abcd,aecd->abe\"") != std::string::npos);
  const std::string other = canonical_body(computed +
                                           "%3 = view %2 {shape=[a, b, 6]}\n%4 = contract %3, %y "
                                           "{spec=\"abk,ack->abc\"}\noutput \"o\" %4\n");
  CHECK(other.find("spec=\"abcd,aecd->abe\"") != std::string::npos);
  const std::string narrowed = canonical_body(computed +
                                              "%3 = view %2 {shape=[a, b, 6]}\n%4 = cast %3 {dtype=f32}\n%5 = cast "
                                              "%y {dtype=f32}\n%6 = contract %5, %4 {spec=\"abk,ack->abc\"}\n"
                                              "output \"o\" %6\n");
  CHECK(narrowed.find("spec=\"abcd,aecd->abe\"") != std::string::npos);
  // Along another dim, of stored values, or of values with other users.
  const auto keeps = [](const std::string& lines) { return canonical_body(lines).find("abcd") == std::string::npos; };
  CHECK(keeps(computed + "%3 = view %2 {shape=[a, b, 6]}\n%4 = contract %y, %3 {spec=\"abk,abj->akj\"}\noutput "
                         "\"o\" %4\n"));
  CHECK(keeps("%1 = contract %y, %x {spec=\"abk,ack->abc\"}\noutput \"o\" %1\n"));
  CHECK(keeps(computed + "%3 = view %2 {shape=[a, b, 6]}\n%4 = contract %y, %3 {spec=\"abk,ack->abc\"}\noutput "
                         "\"o\" %4\noutput \"p\" %3\n"));
}

TEST_CASE("canonicalize: contractions with dims in cyclic order", "[canonicalize]") {
  becomes(
      "%1 = permute %x {dims=[2, 0, 1]}\n%2 = contract %1, %y {spec=\"kab,abj->kj\"}\n%3 = contract %1, %1 "
      "{spec=\"kab,jab->kj\"}\noutput \"o\" %2\noutput \"p\" %3\n",
      "%1 = contract %x, %y {spec=\"abc,abd->cd\"} : f64[6, 6]\n"
      "%2 = contract %x, %x {spec=\"abc,abd->cd\"} : f64[6, 6]\noutput \"o\" %1\noutput \"p\" %2\n");
  becomes("%1 = contract %x, %y {spec=\"abc,adc->abd\"}\n%2 = permute %1 {dims=[2, 0, 1]}\noutput \"o\" %2\n",
          "%1 = contract %x, %y {spec=\"abc,adc->dab\"} : f64[b, a, b]\noutput \"o\" %1\n");
}

TEST_CASE("canonicalize: a matmul that is also used untransposed keeps its order", "[canonicalize]") {
  const std::string product = "%1 = contract %x, %y {spec=\"abc,adc->abd\"}\n";
  stays(product + "%2 = transpose %1 {dim0=0, dim1=1}\n%3 = contiguous %2\noutput \"o\" %3\noutput \"p\" %1\n");
  stays(product + "%2 = transpose %1 {dim0=0, dim1=1}\n%3 = exp %1\noutput \"o\" %2\noutput \"p\" %3\n");
}

TEST_CASE("canonicalize: dot products are sums of products", "[canonicalize]") {
  becomes("%1 = contract %x, %x {spec=\"abc,abc->ab\"}\noutput \"o\" %1\n",
          "%1 = mul %x, %x : f64[a, b, 6]\n%2 = sum %1 {dims=[2]} : f64[a, b]\noutput \"o\" %2\n");
  becomes("%1 = contract %x, %x {spec=\"kbc,kbc->bc\"}\noutput \"o\" %1\n",
          "%1 = mul %x, %x : f64[a, b, 6]\n%2 = sum %1 {dims=[0]} : f64[b, 6]\noutput \"o\" %2\n");
  // A sum over several dims would store partial results.
  stays("%1 = contract %x, %y {spec=\"abc,abc->a\"}\noutput \"o\" %1\n");
  // One free dim is a product of a matrix and a vector.
  stays("%1 = contract %x, %y {spec=\"abc,adc->abd\"}\noutput \"o\" %1\n");
  // 16-bit products are not rounded before they are added.
  const ir::Graph graph = parse(
      "graph @g(input %x: bf16[n], input %y: bf16[n]) {\n%1 = contract %x, %y "
      "{spec=\"a,a->\"}\noutput \"o\" %1\n}");
  const std::string dots = text(canonicalize(graph));
  CHECK_THAT(dots, Catch::Contains("mul %2, %1 : f32[n]") && Catch::Contains("cast %4 {dtype=bf16} : bf16[]"));
  check_same_meaning(graph, canonicalize(graph), random_arguments(graph, {{"n", 9}}, 1));
}

TEST_CASE("canonicalize: each rule has a description and a unique name", "[canonicalize]") {
  std::vector<std::string_view> names;
  for (const auto rules :
       {canonical::view_rules(), canonical::algebra_rules(), canonical::join_rules(), canonical::contract_rules()})
    for (const auto& rule : rules) {
      CHECK_FALSE(rule.what.empty());
      names.push_back(rule.name);
    }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}
