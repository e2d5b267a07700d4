#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "frontend/ops/ops.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"
#include "passes/autodiff/autodiff.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/program_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

/// ATen ops whose results follow from a few lines of C++; others are in the programs of tests/import/data/pt2.

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensors arguments_of(const std::vector<std::pair<std::string, HostTensor>>& values) {
  Tensors arguments;
  for (const auto& [name, value] : values) arguments.set(name, value);
  return arguments;
}

/// Checks the results of a program, interpreted and compiled.
void check_results(const ProgramWriter& program, const Tensors& arguments, const Tensors& expected,
                   double tolerance = 0) {
  const importing::ImportedGraph imported = importing::import_graph(program.write());
  for (const bool is_compiled : {false, true})
    CHECK(difference(run_imported(imported, arguments, is_compiled), expected, {tolerance, tolerance}) ==
          std::nullopt);
}

/// Checks the gradient of the sum of the first output with respect to x, f64, by central differences.
void check_gradient(const ProgramWriter& program, const Tensors& arguments) {
  const importing::ImportedGraph imported = importing::import_graph(program.write());
  imported.graph.output("total", imported.outputs.begin()->second.sum());
  const ir::Graph graph = ir::differentiate(imported.graph.finish(), {.outputs = {{"total", ""}}, .wrt = {"x"}});
  const HostTensor gradient = ir::interpret(graph, arguments).at("grad.x");
  constexpr double step = 1e-6;
  for (std::int64_t i = 0; i < gradient.numel(); ++i) {
    const auto total_at = [&](double offset) {
      HostTensor x = arguments.at("x");
      x.set(i, x.get(i) + offset);
      Tensors moved = arguments;
      moved.set("x", x);
      return ir::interpret(graph, moved).at("total").item();
    };
    CHECK(gradient.get(i) == Approx((total_at(step) - total_at(-step)) / (2 * step)).epsilon(1e-5).margin(1e-7));
  }
}

ProgramWriter unary(std::string_view target, const WrittenTensor& x, std::vector<std::string> more,
                    const std::vector<WrittenTensor>& results) {
  ProgramWriter program;
  more.insert(more.begin(), tensor_argument("self", x.name));
  program.input(x).node(target, more, results);
  std::vector<std::string> names;
  for (const WrittenTensor& result : results) names.push_back(result.name);
  return program.outputs(names);
}

}  // namespace

TEST_CASE("aten ops: greatest common divisors and least common multiples") {
  constexpr std::int64_t large = 7540113804746346429, before = 4660046610375530309;  // Fibonacci numbers 92 and 91
  const std::vector<std::int64_t> a{large, 0, 0, 12, -24, 7, 1 << 20, -9}, b{before, 0, -4, 18, 36, 1, 12, -6};
  const auto wrapped = std::abs(static_cast<std::int64_t>(static_cast<std::uint64_t>(large) * before));
  for (const DType dtype : {i64, i8}) {
    const std::size_t first = dtype == i64 ? 0 : 1, count = dtype == i64 ? a.size() : 5;
    NumberList x, y, divisors, multiples;
    for (std::size_t i = first; i < first + count; ++i) {
      x.push_back(a[i]);
      y.push_back(b[i]);
      divisors.push_back(std::gcd(a[i], b[i]));
      multiples.push_back(i == 0 ? wrapped : std::lcm(a[i], b[i]));
    }
    const auto n = static_cast<std::int64_t>(count);
    const std::vector<std::string> operands{tensor_argument("self", "x"), tensor_argument("other", "y")};
    ProgramWriter program;
    program.input({"x", dtype, {n}}).input({"y", dtype, {n}});
    program.node("gcd", operands, {{"g", dtype, {n}}}).node("lcm", operands, {{"l", dtype, {n}}});
    const Tensors arguments = arguments_of(
        {{"x", HostTensor::from_numbers({n}, x, dtype)}, {"y", HostTensor::from_numbers({n}, y, dtype)}});
    const HostTensor lcm = HostTensor::from_numbers({n}, multiples, dtype);
    check_results(program.outputs({"g", "l"}), arguments,
                  arguments_of({{"output_0", HostTensor::from_numbers({n}, divisors, dtype)}, {"output_1", lcm}}));
  }
  ProgramWriter floats;
  floats.input({"x", f32, {2}}).node("gcd", {tensor_argument("self", "x"), tensor_argument("other", "x")}, {});
  CHECK_THAT(import_error(floats.write()), Contains("divisors of f32  [import_dtype]"));
}

TEST_CASE("aten ops: the most frequent element is the smallest of several, at its last position") {
  const WrittenTensor x{"x", f64, {3, 7}};
  const ProgramWriter program =
      unary("mode", x, {integer_argument("dim", 1)}, {{"values", f64, {3}}, {"indices", i64, {3}}});
  const Tensors arguments = arguments_of({{"x", HostTensor::from_numbers({3, 7}, {3, 1, 3, 1, 2, 5, 4,  //
                                                                                  9, 8, 7, 6, 5, 4, 3,  //
                                                                                  0, 2, 0, 2, 2, 0, 2},
                                                                         f64)}});
  check_results(program, arguments,
                arguments_of({{"output_0", HostTensor::from_numbers({3}, {1, 3, 2}, f64)},
                              {"output_1", HostTensor::from_numbers({3}, {3, 6, 6}, i64)}}));
  check_gradient(program, arguments_of({{"x", HostTensor::from_numbers({3, 7}, {3,  1, 3.5, 1.5, 2,   5, 4,  //
                                                                                9,  8, 7,   6,   5,   4, 3,  //
                                                                                -1, 2, 0,   7,   2.5, 1, 4},
                                                                       f64)}}));
}

TEST_CASE("aten ops: quantiles without NaN") {
  const WrittenTensor x{"x", f64, {3, 5}};
  const ProgramWriter program = unary("torch.ops.aten.nanquantile.scalar", x,
                                      {real_argument("q", 0.3), integer_argument("dim", 1)}, {{"y", f64, {3}}});
  const NumberList numbers{5.0,          not_a_number, 1.0,          2.0,          not_a_number,
                           not_a_number, not_a_number, not_a_number, not_a_number, not_a_number,
                           4.0,          3.0,          2.0,          1.0,          0.0};
  const Tensors arguments = arguments_of({{"x", HostTensor::from_numbers({3, 5}, numbers, f64)}});
  // The ranks are 0.3 * 2 and 0.3 * 4.
  check_results(program, arguments,
                arguments_of({{"output", HostTensor::from_numbers({3}, {1.6, not_a_number, 1.2}, f64)}}), 1e-12);
}

TEST_CASE("aten ops: elements of a storage by their strides") {
  const WrittenTensor x{"x", f64, {3, 4}};
  const auto strided = [&](const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                           std::int64_t offset) {
    return unary("as_strided", x,
                 {integers_argument("size", sizes), integers_argument("stride", strides),
                  integer_argument("storage_offset", offset)},
                 {{"y", f64, sizes}});
  };
  HostTensor numbers(f64, {3, 4});
  for (int i = 0; i < 12; ++i) numbers.set(i, i);
  const Tensors arguments = arguments_of({{"x", numbers}});
  const auto expected = [](const std::vector<std::int64_t>& sizes, const NumberList& values) {
    return arguments_of({{"output", HostTensor::from_numbers(sizes, values, f64)}});
  };
  const ProgramWriter transposed = strided({4, 3}, {1, 4}, 0), windows = strided({2, 4}, {3, 2}, 1);
  check_results(transposed, arguments, expected({4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  check_results(windows, arguments, expected({2, 4}, {1, 3, 5, 7, 4, 6, 8, 10}));
  check_gradient(strided({2, 4}, {1, 2}, 0), arguments);  // elements that several windows have
  const auto text = [](const ProgramWriter& program) {
    return ir::print(importing::import_graph(program.write()).graph.finish());
  };
  CHECK_THAT(text(transposed), !Contains("gather"));
  ProgramWriter views;
  views.input(x).node("t", {tensor_argument("self", "x")}, {{"v", f64, {4, 3}, {1, 4}}});
  views.node("as_strided",
             {tensor_argument("self", "v"), integers_argument("size", {12}), integers_argument("stride", {1})},
             {{"y", f64, {12}}});
  CHECK_THAT(import_error(views.outputs({"y"}).write()),
             Contains("/y: as_strided: the operand is a part of its storage, or not in row-major order") &&
                 Contains("call contiguous()"));
}

TEST_CASE("aten ops: losses with margins") {
  const WrittenTensor x{"x", f64, {2, 3}}, y{"y", i64, {2}}, many{"y", i64, {2, 3}};
  const Tensors arguments =
      arguments_of({{"x", HostTensor::from_numbers({2, 3}, {0.1, 0.9, 0.3, 2.0, -1.0, 0.5}, f64)},
                    {"y", HostTensor::from_numbers({2}, {1, 2}, i64)}});
  const auto program = [&](const char* target, const WrittenTensor& targets, std::int64_t p) {
    ProgramWriter written;
    std::vector<std::string> given{tensor_argument("self", "x"), tensor_argument("target", "y")};
    if (p > 0) given.push_back(integer_argument("p", p));
    return written.input(x).input(targets).node(target, given, {{"l", f64, {}}}).outputs({"l"});
  };
  const auto mean = [](double loss) { return arguments_of({{"output", HostTensor::scalar(loss, f64)}}); };
  const double first = (0.2 + 0.4) / 3, second = 2.5 / 3;
  check_results(program("multi_margin_loss", y, 1), arguments, mean((first + second) / 2), 1e-12);
  check_results(program("multi_margin_loss", y, 2), arguments, mean(((0.04 + 0.16) / 3 + 6.25 / 3) / 2), 1e-12);
  check_gradient(program("multi_margin_loss", y, 2), arguments);
  CHECK_THAT(import_error(program("multi_margin_loss", y, 3).write()), Contains("the argument p is 3, not 1 or 2"));
  Tensors labels = arguments;
  labels.set("y", HostTensor::from_numbers({2, 3}, {1, -1, 0, 2, 0, -1}, i64));
  // The targets are 1, and 2 and 0.
  check_results(program("multilabel_margin_loss", many, 0), labels, mean((first + 0.0) / 2), 1e-12);
  check_gradient(program("multilabel_margin_loss", many, 0), labels);
}

TEST_CASE("aten ops: derivatives of digamma") {
  const NumberList at{1.0, 0.5, -0.5, 2.0, 12.0};
  const auto program = [&](std::int64_t order) {
    ProgramWriter written;
    return written.input({"x", f64, {5}})
        .node("polygamma", {integer_argument("n", order), tensor_argument("self", "x")}, {{"y", f64, {5}}})
        .outputs({"y"});
  };
  const Tensors arguments = arguments_of({{"x", HostTensor::from_numbers({5}, at, f64)}});
  const double square = std::numbers::pi * std::numbers::pi, zeta3 = 1.2020569031595942;
  const auto values = [](const NumberList& y) {
    return arguments_of({{"output", HostTensor::from_numbers({5}, y, f64)}});
  };
  double at12 = square / 6, third = -2 * zeta3;
  for (int k = 1; k < 12; ++k) {
    at12 -= 1.0 / (k * k);
    third += 2.0 / (k * k * k);
  }
  check_results(program(1), arguments, values({square / 6, square / 2, square / 2 + 4, square / 6 - 1, at12}), 1e-11);
  check_results(program(2), arguments, values({-2 * zeta3, -14 * zeta3, -14 * zeta3 + 16, -2 * zeta3 + 2, third}),
                1e-10);
  for (std::int64_t order = 0; order < 10; ++order) {
    importing::ImportedGraph imported = importing::import_graph(program(order).write());
    imported.graph.output("total", imported.outputs.at("output").sum());
    const ir::Graph graph = ir::differentiate(imported.graph.finish(), {.outputs = {{"total", ""}}, .wrt = {"x"}});
    const Tensors gradient = arguments_of({{"output", ir::interpret(graph, arguments).at("grad.x")}});
    check_results(program(order + 1), arguments, gradient, 1e-9);
  }
  CHECK_THAT(import_error(program(11).write()), Contains("the argument n is 11, not 0 to 10  [import_attribute]"));
}

TEST_CASE("aten ops: products of bytes wrap, and those of bools are both") {
  ProgramWriter program;
  const auto operands = [](const char* a, const char* b, const char* second) {
    return std::vector<std::string>{tensor_argument("self", a), tensor_argument(second, b)};
  };
  program.input({"x", u8, {3}}).input({"y", u8, {3}}).input({"b", boolean, {2}});
  program.node("outer", operands("x", "y", "vec2"), {{"o", u8, {3, 3}}});
  program.node("kron", operands("x", "y", "other"), {{"k", u8, {9}}});
  program.node("linalg_cross", operands("x", "y", "other"), {{"c", u8, {3}}});
  program.node("outer", operands("b", "b", "vec2"), {{"p", boolean, {2, 2}}}).outputs({"o", "k", "c", "p"});
  const NumberList products{100, 200, 44, 20, 40, 60, 0, 0, 0};  // 300 - 256
  const Tensors arguments = arguments_of({{"x", HostTensor::from_numbers({3}, {10, 2, 0}, u8)},
                                          {"y", HostTensor::from_numbers({3}, {10, 20, 30}, u8)},
                                          {"b", HostTensor::from_numbers({2}, {1, 0}, boolean)}});
  check_results(program, arguments,
                arguments_of({{"output_0", HostTensor::from_numbers({3, 3}, products, u8)},
                              {"output_1", HostTensor::from_numbers({9}, products, u8)},
                              {"output_2", HostTensor::from_numbers({3}, {60, 256 - 44, 180}, u8)},
                              {"output_3", HostTensor::from_numbers({2, 2}, {1, 0, 0, 0}, boolean)}}));
}

TEST_CASE("aten ops: prints, checks of linear algebra and their tokens are left out") {
  const auto program = [](const char* op) {
    ProgramWriter written;
    written.token("t").input({"x", f32, {2}});
    written.node("torch.ops.higher_order.with_effects",
                 {tensor_argument("", "t"), op_argument(op), text_argument("", "text")}, {{"u", f32, {0}}});
    written.node("relu", {tensor_argument("self", "x")}, {{"y", f32, {2}}});
    return written.token_output("u").outputs({"y"});
  };
  const importing::ImportedGraph imported = importing::import_graph(program("torch.ops.aten._print.default").write());
  CHECK(imported.outputs.size() == 1);
  CHECK_THAT(ir::print(imported.graph.finish()), Contains("relu") && !Contains("input t"));
  CHECK(import_error(program("torch.ops.aten._linalg_check_errors.default").write()) == "no error");
  CHECK_THAT(import_error(program("torch.ops.mine.send.default").write()),
             Contains("the op mine.send: /u") && Contains("tokens order the effects of ops"));
}

TEST_CASE("aten ops: the checks of a decomposed one_hot are left out, others are refused") {
  const auto error = [](const char* message) {
    ProgramWriter program;
    program.input({"x", boolean, {}})
        .node("torch.ops.aten._assert_async.msg",
              {tensor_argument("self", "x"), text_argument("assert_msg", message)}, {});
    return import_error(
        program.node("logical_not", {tensor_argument("self", "x")}, {{"y", boolean, {}}}).outputs({"y"}).write());
  };
  CHECK(error("one_hot: Class values must be non-negative.") == "no error");
  CHECK(error("one_hot: Class values must be smaller than num_classes.") == "no error");
  CHECK_THAT(error("positive"), Contains("the program checks values of a run: positive  [import_unsupported]"));
}
