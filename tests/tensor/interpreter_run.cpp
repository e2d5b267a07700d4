#include <catch2/catch.hpp>
#include <cmath>

#include "ir/tensor/text/parser.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::error_label;
using Numbers = std::vector<double>;

TEST_CASE("interpret returns outputs by name and updates by state name") {
  GraphBuilder b("step");
  const Value x = b.argument(ops::input, "x", f32, {2});
  const Value w = b.argument(ops::parameter, "w", f32, {2});
  const Value loss = sum(mul(x, w));
  b.output("loss", loss);
  b.update(w, sub(w, mul(x, 0.5)));
  const Graph graph = b.finish();
  const Tensors results =
      interpret(graph, {{"x", HostTensor::from({2}, {2, 4})}, {"w", HostTensor::from({2}, {1, 1})}});
  CHECK(results.size() == 2);
  CHECK(results.at("loss").same_bits(HostTensor::scalar(6)));
  CHECK(results.at("w").same_bits(HostTensor::from({2}, {0, -1})));
}

TEST_CASE("each result is rounded to its dtype unless requested otherwise") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f32, {});
  b.output("y", add(x, 0x1p-30));
  const Graph graph = b.finish();
  const Tensors arguments = {{"x", HostTensor::scalar(1)}};
  CHECK(interpret(graph, arguments).at("y").same_bits(HostTensor::scalar(1)));
  const HostTensor exact = interpret(graph, arguments, {.round = false, .dims = {}}).at("y");
  CHECK(exact.dtype() == f64);
  CHECK(exact.get(0) == 1 + 0x1p-30);
}

TEST_CASE("any value can be requested, by id or by name") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {2});
  const Value hidden = mul(x, 3.0);
  b.set_name(hidden, "hidden");
  b.output("y", add(hidden, 1.0));
  const Tensors arguments = {{"x", HostTensor::from({2}, {1, 2}, f64)}};
  const ValueId wanted[] = {hidden.id(), x.id(), hidden.id()};
  const auto values = interpret_values(b.graph(), arguments, wanted);
  CHECK(values[0].same_bits(HostTensor::from({2}, {3, 6}, f64)));
  CHECK(values[1].same_bits(arguments.at("x")));
  CHECK(values[2].same_bits(values[0]));
  const Tensors named = interpret_named(b.graph(), arguments);
  CHECK(named.size() == 3);
  CHECK(named.at("hidden").get(1) == 6);
  CHECK(named.at("y").get(0) == 4);
}

TEST_CASE("an unknown result is an error that names the existing ones") {
  const Tensors results{{"loss", HostTensor::scalar(1)}, {"logits", HostTensor::scalar(2)}};
  CHECK(results.at("loss").get(0) == 1);
  std::string text;
  const int line = __LINE__ + 1;
  CHECK(error_label([&] { (void)results.at("logit"); }, &text) == "tensor_unknown");
  CHECK(text == "interpreter_run.cpp:" + std::to_string(line) +
                    ": at: there is no tensor named logit  [tensor_unknown]\n"
                    "  there are: logits, loss; did you mean 'logits'?");
  CHECK(error_label([&] { (void)Tensors().at("y"); }, &text) == "tensor_unknown");
  CHECK(text.find("there are: none") != std::string::npos);
  Tensors many;
  for (int i = 0; i < 100; ++i) many.emplace("weight" + std::to_string(i), HostTensor());
  many.at("weight7") = HostTensor::scalar(3);
  CHECK(many.at("weight7").get(0) == 3);
  CHECK(error_label([&] { (void)many.at("y"); }, &text) == "tensor_unknown");
  CHECK(text.find(" and 88 more") != std::string::npos);
}

TEST_CASE("the error for an unknown argument does not suggest one that is given") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {2});
  b.output("y", add(x, b.argument(ops::parameter, "weight", f64, {2})));
  const HostTensor two(f64, {2});
  std::string text;
  CHECK(error_label([&] { interpret(b.graph(), {{"xx", two}}); }, &text) == "argument_unknown");
  CHECK(text.find("did you mean 'x'?") != std::string::npos);
  CHECK(error_label([&] { interpret(b.graph(), {{"x", two}, {"xx", two}}); }, &text) == "argument_unknown");
  CHECK(text.find("did you mean") == std::string::npos);
  CHECK(text.find("its inputs are: x") != std::string::npos);
  CHECK(error_label([&] { interpret(b.graph(), {{"x", two}, {"wieght", two}}); }, &text) == "argument_unknown");
  CHECK(text.find("did you mean 'weight'?") != std::string::npos);
}

TEST_CASE("values that no result needs are not computed") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f64, {2});
  gather(x, literal(b, {1}, {7}, i64));  // would be out of range
  b.output("y", x);
  CHECK(interpret(b.graph(), {{"x", HostTensor(f64, {2})}}).at("y").numel() == 2);
}

TEST_CASE("dims are bound from the arguments, polynomials included") {
  GraphBuilder b("g");
  const Dim n("n"), m("m");
  const Value x = b.argument(ops::input, "x", f64, {n * 2 + 1});
  const Value y = b.argument(ops::input, "y", f64, {m, n});
  b.output("x", iota(b, {n}, 0, i64));
  b.output("y", sum(y, {0}));
  b.output("z", slice(x, 0, 0, n));
  const Graph graph = b.finish();
  const auto run = [&](std::int64_t xs, std::vector<std::int64_t> ys) {
    return interpret(graph, {{"x", HostTensor(f64, {xs})}, {"y", HostTensor(f64, std::move(ys))}});
  };
  CHECK(run(7, {2, 3}).at("x").numel() == 3);
  std::string text;
  CHECK(error_label([&] { run(7, {2, 4}); }, &text) == "dim_conflict");
  CHECK(text == "n is 4 in dim 1 of y, but n is 3 in dim 0 of x  [dim_conflict]\n  one name means one size");
  CHECK(error_label([&] { run(6, {2, 3}); }, &text) == "dim_conflict");
  CHECK(text.find("2*n + 1 is 6 in dim 0 of x, which no size n gives") != std::string::npos);
}

TEST_CASE("wrong arguments are rejected by name") {
  GraphBuilder b("g");
  const Value tokens = b.argument(ops::input, "tokens", i64, {Dim("B"), 4});
  b.output("y", tokens);
  const Graph graph = b.finish();
  const auto label = [&](const Tensors& arguments, std::string* text = nullptr) {
    return error_label([&] { interpret(graph, arguments); }, text);
  };
  std::string text;
  CHECK(label({}, &text) == "argument_missing");
  CHECK(text == "the argument tokens of @g is missing  [argument_missing]\n  it is i64[B, 4]");
  CHECK(label({{"tokns", HostTensor(i64, {2, 4})}}, &text) == "argument_unknown");
  CHECK(text.find("did you mean 'tokens'?") != std::string::npos);
  CHECK(label({{"tokens", HostTensor(i32, {2, 4})}}) == "argument_dtype");
  CHECK(label({{"tokens", HostTensor(i64, {4})}}) == "argument_rank");
  CHECK(label({{"tokens", HostTensor(i64, {2, 5})}}, &text) == "argument_shape");
  CHECK(text == "tokens must be i64[B, 4], not i64[2, 5]  [argument_shape]\n  dim 1 has size 5 instead of 4");
  CHECK(label({{"tokens", HostTensor(i64, {2, 4})}}).empty());
}

TEST_CASE("a dim that no argument binds is an error, not a guess") {
  GraphBuilder b("g");
  b.output("y", iota(b, {Dim("n")}, 0, i64));
  CHECK(error_label([&] { interpret(b.graph(), {}); }) == "dim_unbound");
  CHECK(interpret(b.graph(), {}, {.round = true, .dims = {{"n", 3}}}).at("y").numel() == 3);
}

TEST_CASE("an output with the name of a state is rejected") {
  GraphBuilder b("g");
  const Value w = b.argument(ops::state, "w", f32, {});
  b.output("w", w);
  b.update(w, neg(w));
  CHECK(error_label([&] { interpret(b.graph(), {{"w", HostTensor::scalar(1)}}); }) == "result_name");
}

TEST_CASE("composites match their expansion, run-time checks included") {
  GraphBuilder b("g");
  const Dim n("n"), m("m");
  const Value x = b.argument(ops::input, "x", f64, {2, n});
  const Value y = b.argument(ops::input, "y", f64, {m});
  b.output("flat", reshape(transpose(x, 0, 1), {m}));
  b.output("y", y);
  const Graph graph = b.finish();
  const auto run = [&](std::int64_t size) {
    return interpret(graph, {{"x", HostTensor::from({2, 2}, {1, 2, 3, 4}, f64)}, {"y", HostTensor(f64, {size})}});
  };
  CHECK(run(4).at("flat").same_bits(HostTensor::from({4}, {1, 3, 2, 4}, f64)));
  CHECK(error_label([&] { run(3); }) == "view_numel");
}

TEST_CASE("host tensors print NaN without its sign, which has no meaning") {
  const double nan = std::nan("");
  CHECK(HostTensor::of<double>({2}, {nan, std::copysign(nan, -1.0)}).to_string() == "f64[2] [nan, nan]");
  CHECK(HostTensor::of<double>({2}, {-nan, -1.5}).cast(bf16).to_string() == "bf16[2] [nan, -1.5]");
}

TEST_CASE("empty tensors are not looped over, for any number of rows") {
  constexpr std::int64_t many = std::int64_t{1} << 60;
  const Graph graph = parse_graph(R"(graph @g(input %x: f64[n, 3, m], input %z: f64[n, 2, m], input %y: f64[m],
         input %i: i64[4], input %u: f64[n, 4, m]) {
  %1 = add %x, %y
  %2 = gather %x, %i {dim=1}
  %3 = scatter_add %i, %u {size=3, dim=1}
  %4 = concat %x, %z {dim=1}
  %5 = pad %x {dim=1, low=1, high=2}
  %6 = permute %x {dims=[1, 2, 0]}
  %7 = contiguous %6
  %8 = sum %x {dims=[0]}
  %9 = iota {shape=[n, m], dim=0, dtype=f64}
  output "add" %1
  output "gather" %2
  output "scatter" %3
  output "concat" %4
  output "pad" %5
  output "permute" %7
  output "sum" %8
  output "iota" %9
})");
  const auto empty = [](std::int64_t rows) { return HostTensor(f64, {many, rows, 0}); };
  Tensors arguments = {{"x", empty(3)}, {"z", empty(2)}, {"u", empty(4)}, {"y", HostTensor(f64, {0})}};
  arguments.set("i", HostTensor::from_ints({4}, {0, 2, 1, 1}));
  const Tensors found = interpret(graph, arguments);
  CHECK(found.at("concat").shape() == std::vector<std::int64_t>{many, 5, 0});
  CHECK(found.at("sum").shape() == std::vector<std::int64_t>{3, 0});
  CHECK(found.at("iota").to_string(1) == "f64[1152921504606846976, 0] [[], ..., []]");
  // If a value would be added, the indices are checked, but not for every row.
  arguments.set("i", HostTensor::from_ints({4}, {0, 2, 1, 3}));
  CHECK(error_label([&] { interpret(graph, arguments); }) == "index_range");
}

TEST_CASE("iota with more elements than fit an index is an error") {
  const Graph graph = parse_graph(R"(graph @g(input %x: f64[n, 0]) {
  %1 = iota {shape=[3, n, n], dim=0, dtype=i64}
  output "i" %1
})");
  const Tensors arguments = {{"x", HostTensor(f64, {std::int64_t{1} << 40, 0})}};
  CHECK(error_label([&] { interpret(graph, arguments); }) == "host_tensor_shape");
}
