#include "passes/transforms/dtypes/mixed_precision.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/dtypes/convert_dtype.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

/// Returns the body of a graph of x, h: f32[2, 3] and w: f32[4, 3] after the pass, without the signature.
std::string mixed(const std::string& body, DType low_precision = bf16, const std::string& extra = "") {
  const std::string head =
      "graph @g(input %x: f32[2, 3], input %h: bf16[2, 3], parameter %w: f32[4, 3]" + extra + ") {\n";
  std::string after = text(mixed_precision(parse(head + body + "}"), low_precision));
  after.erase(0, after.find("{\n") + 2);
  return after;
}

/// Checks that the pass changes nothing.
void check_untouched(const std::string& body, DType low_precision = bf16, const std::string& extra = "") {
  INFO(body);
  CHECK(mixed(body, low_precision, extra).find("cast") == std::string::npos);
}

/// x w^T + bias, a norm, a GELU, another matmul, and a mean squared error.
constexpr std::string_view network = R"(graph @n(input %x: f32[B, 8], input %y: f32[B, 4], parameter %w: f32[8, 8],
    parameter %b: f32[8], parameter %g: f32[8], parameter %v: f32[4, 8]) {
  %1 = linear %x, %w, %b
  %2 = gelu %1
  %3 = add %2, %x
  %4 = rms_norm %3, %g
  %5 = linear %4, %v
  %6 = sub %5, %y
  %7 = square %6
  %8 = mean %7 {dims=[0, 1]}
  output "loss" %8
  output "out" %5
})";

}  // namespace

TEST_CASE("mixed precision: matmuls are low precision, norms f32, outputs keep their dtype", "[mixed_precision]") {
  CHECK(mixed(R"(  %1 = linear %x, %w
  %2 = relu %1
  %3 = rms_norm %2
  output "o" %3
  output "p" %2
)") == R"(  %1 = cast %x {dtype=bf16} : bf16[2, 3]
  %2 = cast %w {dtype=bf16} : bf16[4, 3]
  %3 = linear %1, %2 : bf16[2, 4]
  %4 = relu %3 : bf16[2, 4]
  %5 = cast %4 {dtype=f32} : f32[2, 4]
  %6 = rms_norm %5 : f32[2, 4]
  output "o" %6
  output "p" %5
}
)");
}

TEST_CASE("mixed precision: an f32 tensor operand makes the op f32, a scalar does not", "[mixed_precision]") {
  const std::string product = "  %1 = linear %x, %w\n  %2 = linear %1, %1\n";
  CHECK_THAT(mixed(product + "  %3 = add %2, %2\n  output \"o\" %3\n"), Contains("add %4, %4 : bf16[2, 2]"));
  CHECK_THAT(mixed(product + "  %3 = add %2, %z\n  output \"o\" %3\n", bf16, ", input %z: f32[2, 2]"),
             Contains("%5 = cast %4 {dtype=f32}") && Contains("add %5, %z : f32[2, 2]"));
  const std::string scaled =
      product + "  %3 = constant {dtype=f32, shape=[], values=[0.125]}\n  %4 = mul %2, %3\n  output \"o\" %4\n";
  CHECK_THAT(mixed(scaled), Contains("mul %4, %6 : bf16[2, 2]"));
  CHECK_THAT(mixed(product + "  %3 = mul %2, %s\n  output \"o\" %3\n", bf16, ", parameter %s: f32[]"),
             Contains(": bf16[2, 2]\n  %7 = cast"));
}

TEST_CASE("mixed precision: a weight is rounded once for all its users", "[mixed_precision]") {
  const std::string after =
      mixed("  %1 = linear %x, %w\n  %2 = linear %w, %w\n  output \"o\" %1\n  output \"p\" %2\n");
  const auto first = after.find("cast %w");
  REQUIRE(first != std::string::npos);
  CHECK(after.find("cast %w", first + 1) == std::string::npos);
}

TEST_CASE("mixed precision: numbers that overflow f16 keep an op in f32", "[mixed_precision]") {
  const std::string body = "  %1 = linear %x, %w\n  %2 = masked_fill %1, %m {value=-1e9}\n  output \"o\" %2\n";
  const std::string mask = ", input %m: bool[2, 4]";
  CHECK_THAT(mixed(body, f16, mask), Contains("masked_fill %4, %m {value=-1e9} : f32[2, 4]"));
  CHECK_THAT(mixed(body, bf16, mask), Contains("masked_fill %3, %m {value=-1e9} : bf16[2, 4]"));
  const std::string written =
      "  %1 = linear %x, %w\n  %2 = constant {dtype=f32, shape=[], values=[-1e9]}\n  %3 = where %m, %1, %2\n"
      "  output \"o\" %3\n";
  CHECK_THAT(mixed(written, f16, mask), Contains(": f32[2, 4]\n  output"));
  CHECK_THAT(mixed(written, bf16, mask), Contains("where %m, %3, %5 : bf16[2, 4]"));
  const std::string infinite = "  %1 = linear %x, %w\n  %2 = masked_fill %1, %m {value=-inf}\n  output \"o\" %2\n";
  CHECK_THAT(mixed(infinite, f16, mask), Contains("{value=-inf} : f16[2, 4]"));
}

TEST_CASE("mixed precision: graphs without a matmul are unchanged", "[mixed_precision]") {
  for (const char* body :
       {"  %1 = add %x, %x\n  output \"o\" %1\n", "  %1 = softmax %x {dim=-1}\n  output \"o\" %1\n",
        "  %1 = exp %x\n  %2 = sum %1 {dims=[0], keepdim=false}\n  output \"o\" %2\n",
        "  %1 = gather %w, %i {dim=0}\n  output \"o\" %1\n", "  %1 = gelu %h\n  output \"o\" %1\n",
        "  %1 = matmul %d, %d\n  output \"o\" %1\n", "  %1 = transpose %w {dim0=0, dim1=1}\n  output \"o\" %1\n"})
    check_untouched(body, bf16, ", input %i: i64[2], input %d: f64[3, 3]");
  check_untouched("  %1 = linear %h, %h\n  %2 = softmax %1 {dim=-1}\n  output \"o\" %2\n");
}

TEST_CASE("mixed precision: explicit casts keep their semantics", "[mixed_precision]") {
  CHECK_THAT(mixed("  %1 = linear %x, %w\n  %2 = cast %1 {dtype=f64}\n  output \"o\" %2\n"),
             Contains("linear %1, %2 : bf16[2, 4]") && Contains("cast %3 {dtype=f64} : f64[2, 4]"));
  // The matmul already returns bf16, so the user's cast is redundant.
  CHECK_THAT(mixed("  %1 = linear %x, %w\n  %2 = cast %1 {dtype=bf16}\n  %3 = neg %2\n  output \"o\" %3\n"),
             Contains("neg %3 : bf16[2, 4]"));
}

TEST_CASE("mixed precision: states are updated in their dtype", "[mixed_precision]") {
  CHECK_THAT(mixed("  %1 = matmul %c, %c\n  update %c <- %1\n", bf16, ", state %c: f32[3, 3]"),
             Contains("matmul %1, %1 : bf16[3, 3]\n  %3 = cast %2 {dtype=f32} : f32[3, 3]\n  update %c <- %3"));
}

TEST_CASE("mixed precision: every op of the table is computed in the precision of its record", "[mixed_precision]") {
  for (const Op* op : {&ops::contract, &ops::matmul, &ops::linear, &ops::einsum, &ops::attention})
    CHECK(op->precision == MixedPrecision::low_precision);
  for (const Op* op :
       {&ops::sum, &ops::mean, &ops::var, &ops::exp, &ops::log, &ops::pow, &ops::rsqrt, &ops::softmax,
        &ops::log_softmax, &ops::logsumexp, &ops::layer_norm, &ops::rms_norm, &ops::cross_entropy, &ops::scatter_add})
    CHECK(op->precision == MixedPrecision::f32);
  for (const Op* op :
       {&ops::add, &ops::mul, &ops::relu, &ops::gelu, &ops::silu, &ops::dropout, &ops::where, &ops::concat,
        &ops::gather, &ops::reshape, &ops::view, &ops::masked_fill, &ops::max, &ops::rope})
    CHECK(op->precision == MixedPrecision::follow);
}

TEST_CASE("mixed precision: a network and its gradients match approximately, and parameter gradients are f32",
          "[mixed_precision]") {
  const ir::Graph graph = parse(network);
  const Tensors arguments = random_arguments(graph, {{"B", 5}}, 3);
  const GradientRequest request{.outputs = {{"loss", ""}}, .wrt = {"w", "b", "g", "v"}};
  const Tensors expected = interpret(differentiate(graph, request), arguments);
  for (const auto& [low_precision, tolerance] : {std::pair{bf16, 1.6e-2}, std::pair{f16, 2e-3}}) {
    const ir::Graph with_gradients = differentiate(mixed_precision(graph, low_precision), request);
    CHECK_THAT(text(with_gradients), Contains(std::string(name(low_precision))));
    const Tensors found = interpret(with_gradients, arguments, {.round = true});
    for (const auto& [name, value] : expected) {
      INFO(lathe::name(low_precision) << " " << name);
      CHECK(found.at(name).dtype() == f32);
      double difference = 0, size = 0;
      for (std::int64_t i = 0; i < value.numel(); ++i) {
        difference += std::pow(found.at(name).get(i) - value.get(i), 2);
        size += std::pow(value.get(i), 2);
      }
      CHECK(std::sqrt(difference / size) < tolerance);
      CHECK(difference > 0);
    }
  }
}

TEST_CASE("mixed precision: all sample graphs verify and run, f64 is unchanged", "[mixed_precision]") {
  for (const Specimen& specimen : specimens()) {
    if (specimen.name == "complex") continue;
    INFO(specimen.name);
    const ir::Graph low_precision = mixed_precision(convert_dtype(parse(specimen.text), f64, f32), bf16);
    CHECK_FALSE(find_defect(low_precision));
    CHECK(interpret(low_precision, random_arguments(low_precision, specimen.dims)).count("loss") == 1);
  }
  check_untouched("  %1 = matmul %d, %d\n  %2 = add %1, %d\n  output \"o\" %2\n", f16, ", input %d: f64[3, 3]");
}

TEST_CASE("mixed precision: errors, and pass names", "[mixed_precision]") {
  const ir::Graph graph = parse(network);
  CHECK_THAT(error_text([&] { mixed_precision(graph, f64); }), Contains("[mixed_precision]"));
  const ir::Graph step = parse("graph @s(parameter %w: f32[2]) {\n  %1 = neg %w\n  update %w <- %1\n}");
  CHECK_THAT(error_text([&] { mixed_precision(step, bf16); }),
             Contains("updates the parameter w") && Contains("[mixed_precision]"));
  CHECK(text(run_pipeline(graph, parse_pipeline("mixed-f16,dce")).graph) == text(mixed_precision(graph, f16)));
  CHECK_THAT(error_text([] { parse_pipeline("mixed-f8"); }), Contains("[pass_name]"));
}
