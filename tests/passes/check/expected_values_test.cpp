#include "passes/check/expected_values.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

/// The single output of a graph, for random arguments.
struct Subject {
  explicit Subject(std::string_view text, const DimBindings& dims = {}, double tolerance = -1)
      : graph(parse(text)),
        expected(graph, random_arguments(graph, dims), {graph.outputs.front().value},
                 {.tolerance = tolerance < 0 ? std::nullopt : std::optional(tolerance)}) {}

  /// Whether the expected value is still accepted after changing each element.
  template <class Change>
  bool near(Change change) {
    HostTensor found = expected[0];
    for (std::int64_t i = 0; i < found.numel(); ++i) found.set(i, change(found.get(i)));
    return expected.compare(0, found).near();
  }

  ir::Graph graph;
  ExpectedValues expected;
};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
double none(double) { return 0; }
double not_a_number(double) { return nan; }

}  // namespace

TEST_CASE("a value may differ by a few roundings of its dtype, relative to its magnitude", "[check]") {
  for (const char* scale : {"1.0", "1e-6"}) {
    CAPTURE(scale);
    Subject subject(std::string("graph @g(input %x: f32[n, 4]) {\n  %s = constant {dtype=f32, shape=[], values=[") +
                        scale + "]}\n  %1 = exp %x\n  %2 = mul %1, %s\n  output \"y\" %2\n}\n",
                    {{"n", 9}});
    CHECK(subject.near([](double x) { return x; }));
    CHECK(subject.near([](double x) { return x * (1 + 1e-6); }));
    CHECK_FALSE(subject.near([](double x) { return x * (1 + 1e-3); }));
    CHECK_FALSE(subject.near(none));
    CHECK_FALSE(subject.near(not_a_number));
  }
}

TEST_CASE("cancelling terms allow the rounding error of the terms", "[check]") {
  // The sum of deviations from a mean is zero except for rounding.
  Subject subject(R"(graph @g(input %x: f32[64]) {
  %1 = mean %x {dims=[0], keepdim=true}
  %2 = sub %x, %1
  %3 = sum %2 {dims=[0]}
  output "y" %3
})");
  CHECK(std::fabs(subject.expected[0].get(0)) < 1e-5);
  CHECK(subject.near(none));
  CHECK(subject.near([](double) { return 1e-6; }));
  CHECK_FALSE(subject.near([](double) { return 1e-2; }));
  // So is this one, but its terms are arguments, which are not rounded: every bit counts.
  Subject plain(R"(graph @g(input %x: f32[64]) {
  %1 = slice %x {dim=0, start=0, stop=32}
  %2 = concat %1, %1 {dim=0}
  %3 = iota {shape=[64], dim=0, dtype=i64}
  %4 = constant {dtype=i64, shape=[], values=[32]}
  %5 = lt %3, %4
  %6 = neg %2
  %7 = where %5, %2, %6
  %8 = sum %7 {dims=[0]}
  %9 = sum %2 {dims=[0]}
  %10 = sub %9, %9
  %11 = add %10, %8
  output "y" %11
})");
  CHECK(plain.expected[0].get(0) == 0);
  CHECK_FALSE(plain.near([](double) { return 1e-2; }));
}

TEST_CASE("the roundings of equal elements may all have the same sign", "[check]") {
  Subject subject(R"(graph @g(input %x: f32[]) {
  %1 = expand %x {shape=[4096]}
  %2 = exp %1
  %3 = log %2
  %4 = sub %3, %1
  %5 = sum %4 {dims=[0]}
  output "y" %5
})");
  CHECK(subject.near([](double x) { return x + 4096 * 0x1p-23; }));
  CHECK_FALSE(subject.near([](double x) { return x + 4096 * 1e-4; }));
}

TEST_CASE("values computed from a coarser dtype have its tolerance", "[check]") {
  constexpr const char* text = R"(graph @g(input %x: f32[8, 16], input %w: f32[5, 16]) {
  %1 = cast %x {dtype=bf16}
  %2 = cast %w {dtype=bf16}
  %3 = linear %1, %2
  %4 = cast %3 {dtype=f32}
  %5 = tanh %4
  output "y" %5
})";
  Subject subject(text);
  CHECK(subject.near([](double x) { return x * (1 + 4e-3); }));
  CHECK_FALSE(subject.near([](double x) { return x * 2; }));
  CHECK_FALSE(subject.near(none));
  // A user-defined tolerance leaves no room for rounding.
  Subject strict(text, {}, 1e-5);
  CHECK(strict.near([](double x) { return x * (1 + 1e-6); }));
  CHECK_FALSE(strict.near([](double x) { return x * (1 + 4e-3); }));
}

TEST_CASE("integers and booleans are exact, except where rounding decides them", "[check]") {
  Subject exact("graph @g(input %i: i64[4]) {\n  %1 = add %i, %i\n  output \"y\" %1\n}\n");
  CHECK(exact.near([](double x) { return x; }));
  CHECK_FALSE(exact.near([](double x) { return x + 1; }));
  Subject decided(R"(graph @g(input %x: f32[8]) {
  %1 = sum %x {dims=[0]}
  %2 = neg %x
  %3 = sum %2 {dims=[0]}
  %4 = add %1, %3
  %5 = mean %x {dims=[0], keepdim=true}
  %6 = sub %x, %5
  %7 = sum %6 {dims=[0]}
  %8 = lt %4, %7
  output "y" %8
})");
  CHECK(decided.near([](double x) { return 1 - x; }));
}

TEST_CASE("tolerances are finite: elements decided by rounding have none, the others are compared", "[check]") {
  // The difference of equal sums is a rounding error. Of the eight bounds that it is compared with, one is within
  // that error.
  Subject subject(R"(graph @g(input %x: f32[64]) {
  %1 = sum %x {dims=[0]}
  %2 = neg %x
  %3 = sum %2 {dims=[0]}
  %4 = add %1, %3
  %5 = iota {shape=[8], dim=0, dtype=f32}
  %6 = constant {dtype=f32, shape=[], values=[3.0]}
  %7 = sub %5, %6
  %8 = mean %x {dims=[0]}
  %9 = sub %x, %8
  %10 = sum %9 {dims=[0]}
  %11 = add %7, %10
  %12 = lt %4, %11
  output "y" %12
})");
  HostTensor found = subject.expected[0];
  found.set(3, 1 - found.get(3));
  const Nearness decided = subject.expected.compare(0, found);
  CHECK(decided.near());
  CHECK(decided.undecided == 1);
  CHECK_FALSE(decided.none_decided);
  found.set(5, 1 - found.get(5));
  const Nearness wrong = subject.expected.compare(0, found);
  CHECK_FALSE(wrong.near());
  CHECK(std::isfinite(wrong.allowed));
  CHECK(wrong.difference.at == 5);
  for (const double other : {not_a_number(0), std::numeric_limits<double>::infinity()}) {
    Subject finite("graph @g(input %x: f32[4]) {\n  %1 = exp %x\n  output \"y\" %1\n}\n");
    CHECK_FALSE(finite.near([&](double) { return other; }));
  }
}

TEST_CASE("a sine of numbers whose rounding is larger than a period has no correct digit", "[check]") {
  for (const auto& [scale, has_digits] : {std::pair{"10.0", true}, {"1e3", true}, {"1e8", false}, {"1e20", false}}) {
    CAPTURE(scale);
    Subject subject(std::string("graph @g(input %x: f32[n, 4]) {\n  %s = constant {dtype=f32, shape=[], values=[") +
                        scale + "]}\n  %1 = mul %x, %s\n  %2 = sin %1\n  output \"y\" %2\n}\n",
                    {{"n", 9}});
    CHECK(subject.near(none) == !has_digits);
  }
}

TEST_CASE("rounding does not decide a comparison with a constant", "[check]") {
  for (const std::string dtype : {"bf16", "f16"}) {
    const ir::Graph graph = parse("graph @g(input %x: " + dtype + "[2]) {\n  %c = constant {dtype=" + dtype +
                                  ", shape=[], values=[0.1]}\n  %1 = eq %x, %c\n  output \"y\" %1\n}\n");
    const Tensors arguments{{"x", HostTensor::from({2}, {0.1, 3}, f32).cast(*parse_dtype(dtype))}};
    ExpectedValues expected(graph, arguments, {graph.outputs.front().value});
    CHECK(expected[0].get(0) == 1);
    CHECK_FALSE(expected.compare(0, HostTensor(boolean, {2})).near());
  }
}
