#include "passes/transforms/recognize/recognize.h"

#include <catch2/catch.hpp>

#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

constexpr std::string_view signature =
    "graph @g(input %x: f64[B, T, 6], input %w: f64[6], input %b: f64[6], input %c: f64[T, 6], input %s: f64[T, 6], "
    "input %m: f64[T, 6])";

/// Returns the op that computes the output, its attributes and operands, after formulas are replaced.
std::string recognized_in(std::string_view lines, std::string_view of = signature, double tolerance = 1e-12) {
  const ir::Graph before = parse(std::string(of) + " {\n" + std::string(lines) + "\noutput \"y\" %y\n}");
  const ir::Graph after = dce(rebuild(before, [](GraphBuilder&, const Node& node, std::span<const Value> operands) {
    return recognized(node, operands);
  }));
  check_same_meaning(before, after, random_arguments(before, {{"B", 2}, {"T", 3}}), tolerance);
  const std::string whole = text(after);
  const std::size_t end = whole.rfind(" : "), start = whole.rfind(" = ", end);
  return start == std::string::npos ? "" : whole.substr(start + 3, end - start - 3);
}

/// The values that the formulas below use.
constexpr std::string_view numbers = R"(%half = constant {dtype=f64, shape=[], values=[0.5]}
%one = constant {dtype=f64, shape=[], values=[1]}
%two = constant {dtype=f64, shape=[], values=[2]}
%three = constant {dtype=f64, shape=[], values=[3]}
%eps = constant {dtype=f64, shape=[], values=[1e-6]}
%root2 = constant {dtype=f64, shape=[], values=[1.4142135623730951]}
%inverse2 = constant {dtype=f64, shape=[], values=[0.70710678118654752]}
%cubic = constant {dtype=f64, shape=[], values=[0.044715]}
%tanhs = constant {dtype=f64, shape=[], values=[0.79788456080286536]}
)";

std::string with_numbers(std::string_view lines) { return recognized_in(std::string(numbers) + std::string(lines)); }

}  // namespace

TEST_CASE("recognize: rms_norm, with all forms of the square and of the root") {
  for (const std::string square : {"mul %x, %x", "pow %x, %two", "square %x"})
    for (const std::string scaled :
         {"%r = rsqrt %v\n%h = mul %x, %r", "%q = sqrt %v\n%h = div %x, %q",
          "%q = sqrt %v\n%r = reciprocal %q\n%h = mul %r, %x", "%q = sqrt %v\n%r = div %one, %q\n%h = mul %x, %r"}) {
      const std::string lines =
          "%q0 = " + square + "\n%m0 = mean %q0 {dims=[2], keepdim=true}\n%v = add %m0, %eps\n" + scaled + "\n";
      CAPTURE(lines);
      CHECK(with_numbers(lines + "%y = mul %w, %h") == "rms_norm %x, %w {eps=1e-6}");
      CHECK(with_numbers(lines + "%y = mul %h, %two") == "mul %2, %1");
    }
}

TEST_CASE("recognize: no rms_norm for other means, an eps after the root, or weights of two dims") {
  const auto is_kept = [](const std::string& lines) {
    CAPTURE(lines);
    CHECK(with_numbers(lines).find("norm") == std::string::npos);
  };
  const std::string square = "%q = mul %x, %x\n", mean = "%m0 = mean %q {dims=[2], keepdim=true}\n",
                    scaled = "%v = add %m0, %eps\n%r = rsqrt %v\n";
  is_kept(square + "%m0 = mean %q {dims=[1], keepdim=true}\n" + scaled + "%y = mul %x, %r");
  is_kept(square + "%m0 = mean %q {dims=[1, 2], keepdim=true}\n" + scaled + "%y = mul %x, %r");
  is_kept(square + "%m0 = sum %q {dims=[2], keepdim=true}\n" + scaled + "%y = mul %x, %r");
  is_kept(square + mean + "%n = sqrt %m0\n%v = add %n, %eps\n%y = div %x, %v");
  is_kept(square + mean + "%v = sub %m0, %eps\n%n = rsqrt %v\n%y = mul %x, %n");
  is_kept(square + mean + scaled + "%e = exp %x\n%y = mul %e, %r");
  is_kept("%q = mul %x, %c\n" + mean + scaled + "%y = mul %x, %r");
  CHECK(with_numbers(square + mean + scaled + "%h = mul %x, %r\n%y = mul %h, %c").starts_with("mul"));
}

TEST_CASE("recognize: layer_norm") {
  const std::string start =
      "%a = mean %x {dims=[2], keepdim=true}\n%d = sub %x, %a\n%q = pow %d, %two\n%v = mean %q {dims=[-1], "
      "keepdim=true}\n%e = add %eps, %v\n%n = sqrt %e\n%h = div %d, %n\n";
  CHECK(with_numbers(start + "%z = mul %h, %w\n%y = add %b, %z") == "layer_norm %x, %w, %b {eps=1e-6}");
  CHECK(with_numbers(start + "%z = mul %w, %h\n%y = add %z, %b") == "layer_norm %x, %w, %b {eps=1e-6}");
  // Without weight or bias, or with a mean of something else.
  CHECK(with_numbers(start + "%y = add %h, %b").starts_with("add"));
  CHECK(with_numbers(start + "%y = mul %h, %w").starts_with("mul"));
  CHECK(with_numbers("%o = exp %x\n%a = mean %o {dims=[2], keepdim=true}\n%d = sub %x, %a\n%q = mul %d, %d\n"
                     "%v = mean %q {dims=[2], keepdim=true}\n%e = add %v, %eps\n%r = rsqrt %e\n%h = mul %d, %r\n"
                     "%z = mul %h, %w\n%y = add %z, %b")
            .starts_with("add"));
}

TEST_CASE("recognize: gelu by erf and by tanh, in every association") {
  for (const std::string z : {"div %x, %root2", "mul %inverse2, %x"})
    for (const std::string product : {"%p = mul %x, %half\n%y = mul %p, %g", "%p = mul %x, %g\n%y = mul %p, %half",
                                      "%p = mul %half, %g\n%y = mul %x, %p", "%p = mul %g, %x\n%y = div %p, %two"})
      CHECK(with_numbers("%z = " + z + "\n%e = erf %z\n%g = add %e, %one\n" + product) == "gelu %x");
  for (const std::string cube : {"%q = pow %x, %three", "%q0 = mul %x, %x\n%q = mul %q0, %x"})
    CHECK(with_numbers(cube + "\n%k = mul %q, %cubic\n%u0 = add %x, %k\n%u = mul %u0, %tanhs\n%e = tanh %u\n"
                              "%g = add %one, %e\n%p = mul %half, %x\n%y = mul %p, %g") ==
          "gelu %x {approximate=\"tanh\"}");
  CHECK(with_numbers(
            "%q = mul %x, %x\n%k = mul %q, %cubic\n%k1 = add %k, %one\n%u0 = mul %x, %tanhs\n%u = mul %u0, %k1\n"
            "%e = tanh %u\n%g = add %one, %e\n%p = mul %half, %x\n%y = mul %p, %g") ==
        "gelu %x {approximate=\"tanh\"}");
}

TEST_CASE("recognize: no gelu for other constants or operands") {
  const auto is_kept = [](const std::string& lines) {
    CAPTURE(lines);
    CHECK(with_numbers(lines).find("gelu") == std::string::npos);
  };
  is_kept("%e = erf %x\n%g = add %e, %one\n%p = mul %x, %half\n%y = mul %p, %g");
  is_kept("%z = div %x, %root2\n%e = erf %z\n%g = add %e, %two\n%p = mul %x, %half\n%y = mul %p, %g");
  is_kept("%z = div %x, %root2\n%e = erf %z\n%g = add %e, %one\n%y = mul %x, %g");
  is_kept("%z = div %x, %root2\n%e = erf %z\n%g = add %e, %one\n%o = exp %x\n%p = mul %o, %half\n%y = mul %p, %g");
  is_kept(
      "%q = pow %x, %two\n%k = mul %q, %cubic\n%u0 = add %x, %k\n%u = mul %u0, %tanhs\n%e = tanh %u\n"
      "%g = add %one, %e\n%p = mul %half, %x\n%y = mul %p, %g");
  // 1.414 is not the root of 2.
  is_kept(
      "%r = constant {dtype=f64, shape=[], values=[1.414]}\n%z = div %x, %r\n%e = erf %z\n%g = add %e, %one\n"
      "%p = mul %x, %half\n%y = mul %p, %g");
}

TEST_CASE("recognize: silu") {
  CHECK(with_numbers("%g = sigmoid %x\n%y = mul %g, %x") == "silu %x");
  CHECK(with_numbers("%e = exp %x\n%g = sigmoid %e\n%y = mul %g, %x").starts_with("mul"));
}

TEST_CASE("recognize: rope") {
  const std::string
      halves = "%1 = slice %x {dim=2, start=0, stop=3}\n%2 = slice %x {dim=2, start=3, stop=6}\n%n = neg %2\n",
      sum = "%r = mul %t, %s\n%p = mul %x, %c\n%y = add %p, %r";
  CHECK(with_numbers(halves + "%t = concat %n, %1 {dim=2}\n" + sum) == "rope %x, %c, %s");
  // The other sign, whole halves the other way round, and rotations of another value.
  CHECK(with_numbers(halves + "%t = concat %2, %1 {dim=2}\n" + sum).starts_with("add"));
  CHECK(with_numbers(halves + "%t = concat %1, %n {dim=2}\n" + sum).starts_with("add"));
  CHECK(with_numbers(halves +
                     "%t = concat %n, %1 {dim=2}\n%r = mul %t, %s\n%e = exp %x\n%p = mul %e, %c\n%y = add %p, %r")
            .starts_with("add"));
  CHECK(with_numbers("%1 = slice %x {dim=2, start=0, stop=2}\n%2 = slice %x {dim=2, start=2, stop=6}\n%n = neg %2\n"
                     "%t = concat %n, %1 {dim=2}\n" +
                     sum)
            .starts_with("add"));
}

TEST_CASE("recognize: constants in f32 are rounded, and bf16 is left alone") {
  const std::string lines =
      "%r = constant {dtype=$, shape=[], values=[1.4142135381698608]}\n%one = constant {dtype=$, shape=[], "
      "values=[1]}\n"
      "%half = constant {dtype=$, shape=[], values=[0.5]}\n%z = div %x, %r\n%e = erf %z\n%g = add %e, %one\n"
      "%p = mul %x, %half\n%y = mul %p, %g";
  const auto of = [&](const std::string& dtype) {
    std::string text = lines;
    for (std::size_t at; (at = text.find('$')) != std::string::npos;) text.replace(at, 1, dtype);
    return recognized_in(text, "graph @g(input %x: " + dtype + "[B, 6])", dtype == "f64" ? 1e-12 : 1e-6);
  };
  CHECK(of("f32") == "gelu %x");
  CHECK(of("bf16").starts_with("mul"));
  CHECK(of("f64").starts_with("mul"));
}
