#include "frontend/ops/custom_op.h"

#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "frontend/dsl.h"
#include "frontend/train/training.h"
#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/op/owned_op.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/support/graphs/same_graph.h"

/// User-defined ops in the DSL.
using namespace lathe;
using Catch::Contains;

namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// x * sigmoid(beta * x) with a closed-form gradient.
CustomOp make_swish() {
  return custom_op(
      "my.swish", [](const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); },
      [](std::span<const Tensor> operands, const Tensor& result, const Tensor& grad) -> std::vector<Tensor> {
        const Tensor &x = operands[0], &beta = operands[1];
        const Tensor s = sigmoid(beta * x);
        return {grad * (s + beta * result * (1 - s)), grad * x * result * (1 - s)};
      });
}

/// Clamps a matrix to low .. high, with its own errors, a gradient that passes everywhere, and a reference.
CustomOpRecord clip_record() {
  CustomOpRecord record;
  record.name = "my.clip";
  record.doc = "a matrix limited to low .. high";
  record.attrs = {{"low", ir::AttrKind::real, true, {}, "the smallest value"},
                  {"high", ir::AttrKind::real, false, 1.0, "the largest value"}};
  record.labels = {"clip_rank", "clip_range"};
  record.infer = [](const ir::InferContext& ctx) {
    const ir::TensorType& x = ctx.operand(0);
    ctx.require(x.rank() == 2, "clip_rank", fmt::format("{} is no matrix", x.to_string()), "give it two dims");
    const double low = ctx.attr<double>("low"), high = ctx.attr<double>("high");
    ctx.require(low < high, "clip_range", fmt::format("low is {}, high {}", low, high));
    return ir::TensorType::contiguous(x.dtype, x.shape);
  };
  record.forward = [](std::span<const Tensor> x, const ir::Attributes& attrs) {
    return clamp(x[0], attrs.get<double>("low"), attrs.get<double>("high"));
  };
  record.backward = [](const BackwardContext& c) { return std::vector{c.grad}; };
  record.reference = [](std::span<const HostTensor> x, const ir::Attributes& attrs) {
    HostTensor result = x[0];
    for (std::int64_t i = 0; i < result.numel(); ++i)
      result.set(i, std::min(std::max(result.get(i), attrs.get<double>("low")), attrs.get<double>("high")));
    return result;
  };
  record.samples = {{.operands = {{{2, 3}}}, .attrs = {{"low", -0.5}}},
                    {.operands = {{{0, 1}}}, .attrs = {{"low", -0.5}, {"high", 0.0}}}};
  return record;
}

HostTensor numbers(std::vector<double> values) {
  return HostTensor::from({static_cast<std::int64_t>(values.size())}, values, f64);
}

}  // namespace

TEST_CASE("a custom op is one named op with a type and a line, and equal uses are one value", "[custom_op]") {
  const CustomOp swish = make_swish();
  Graph g{"model"};
  const Dim n{"n"};
  const Tensor x = g.input("x", f32, {n, 4}), beta = g.input("beta", f32, {4});
  const int line = __LINE__ + 1;
  const Tensor y = swish(x, beta);
  CHECK(swish({x, beta}).value().id() == y.value().id());
  g.output("y", y);
  CHECK_THAT(ir::print(g.ir()), Contains("%1 = my.swish %x, %beta") && Contains(": f32[n, 4]") &&
                                    Contains(fmt::format("loc(\"custom_op_test.cpp\":{})", line)));
  CHECK(g.ir().size() == 3);
  ir::verify(g.ir());
}

TEST_CASE("a custom op computes its forward, and is differentiated by its backward", "[custom_op]") {
  const CustomOp swish = make_swish();
  Graph g{"model"};
  const Tensor x = g.input("x", f64, {3}), beta = g.input("beta", f64, {});
  g.output("y", swish(x, beta));
  g.output("plain", x * sigmoid(beta * x));
  const auto own = grad(swish(x, beta).sum(), {x, beta});
  const auto plain = grad((x * sigmoid(beta * x)).sum(), {x, beta});
  for (int i = 0; i < 2; ++i) {
    g.output(fmt::format("own{}", i), own[i]);
    g.output(fmt::format("plain{}", i), plain[i]);
  }
  const Tensors found =
      ir::interpret(g.ir(), {{"x", numbers({-2, 0.5, 3})}, {"beta", HostTensor::from({}, {1.5}, f64)}});
  for (const auto& [one, other] :
       std::vector<std::pair<const char*, const char*>>{{"y", "plain"}, {"own0", "plain0"}, {"own1", "plain1"}})
    for (std::int64_t i = 0; i < found.at(one).numel(); ++i)
      CHECK(found.at(one).get(i) == Approx(found.at(other).get(i)).epsilon(1e-12));
  // The ops of its backward have the line of the op.
  CHECK_THAT(ir::print(g.ir()), Contains("loc(gradient \"custom_op_test.cpp\""));
}

TEST_CASE("a backward that is not the derivative is used unchanged, also for an op that returns its operand",
          "[custom_op]") {
  const CustomOp reversed = custom_op(
      "my.reversed", [](const Tensor& x) { return x; },
      [](std::span<const Tensor>, const Tensor&, const Tensor& g) -> std::vector<Tensor> { return {-g}; });
  Graph g{"model"};
  const Tensor x = g.input("x", f64, {2});
  g.output("y", reversed(x));
  g.output("grad", grad((reversed(x) * reversed(x)).sum(), {x})[0]);
  const Tensors found = ir::interpret(g.ir(), {{"x", numbers({1, 3})}});
  CHECK(found.at("y").get(1) == 3);
  CHECK(found.at("grad").get(1) == -6);
}

TEST_CASE("the forward is differentiated if there is no backward", "[custom_op]") {
  const CustomOp cube = custom_op("my.cube", [](const Tensor& x) { return x * x * x; });
  check_custom_op(cube, {{.operands = {{{2, 3}}}, .attrs = {}}, {.operands = {{{}}}, .attrs = {}}});
}

TEST_CASE("check_custom_op tests value, reference, strides, text and two derivatives", "[custom_op]") {
  check_custom_op(make_swish(), {{.operands = {{{2, 3}}, {{3}}}, .attrs = {}},
                                 {.operands = {{{2, 1}}, {{1, 3}}}, .attrs = {}},
                                 {.operands = {{{0, 3}}, {{3}}}, .attrs = {}}});
  check_custom_op(CustomOp(clip_record()), {}, {.gradients = false});
}

TEST_CASE("check_custom_op reports the sample and the fault, at the line of the call", "[custom_op]") {
  const std::string here = fmt::format("custom_op_test.cpp:{}: my.", __LINE__ + 1);
  const auto fault = [](const CustomOp& op) { return message_of([&] { check_custom_op(op, {{{{{2}}}, {}}}); }); };
  const auto forward = [](const Tensor& x) { return x * x; };
  const CustomOp wrong = custom_op(
      "my.wrong", forward, [](auto x, const Tensor&, const Tensor& g) -> std::vector<Tensor> { return {g * x[0]}; });
  CHECK_THAT(fault(wrong), Contains(here) && Contains("sample 1: the gradient by operand 1, element 0, is ") &&
                               Contains("by central differences") && Contains("[op_check]"));
  const CustomOp linear_only = custom_op(
      "my.second", forward,
      [](auto x, const Tensor&, const Tensor& g) -> std::vector<Tensor> { return {(x[0] * 2).detach() * g}; });
  CHECK_THAT(fault(linear_only), Contains("sample 1: the second derivative by operand 1"));
  CustomOpRecord record = clip_record();
  record.reference = [](std::span<const HostTensor> x, const ir::Attributes&) { return x[0]; };
  CHECK_THAT(message_of([&] { check_custom_op(CustomOp(record)); }), Contains("the forward gives"));
  record = clip_record();
  CHECK_THAT(message_of([&] { check_custom_op(CustomOp(record)); }), Contains("the gradient by operand 1"));
  CHECK_THAT(fault(custom_op("my.none", forward)), Contains("no error"));
  record.samples = {};
  CHECK_THAT(message_of([&] { check_custom_op(CustomOp(record)); }), Contains("no samples"));
}

TEST_CASE("a custom op record has attributes, a rule with its own errors, and a documentation page", "[custom_op]") {
  const CustomOp clip(clip_record());
  Graph g{"model"};
  const Tensor x = g.input("x", f32, {Dim("n"), 4}), v = g.input("v", f32, {4});
  g.output("y", clip({x}, {{"low", -2.0}}));
  CHECK_THAT(ir::print(g.ir(), {.locations = false}), Contains("%1 = my.clip %x {low=-2.0}"));
  const int line = __LINE__ + 1;
  CHECK(message_of([&] { clip({v}, {{"low", -2.0}}); }) ==
        fmt::format("custom_op_test.cpp:{}: my.clip: f32[4] is no matrix  [clip_rank]\n  give it two dims", line));
  CHECK_THAT(message_of([&] { clip({x}, {{"low", 2.0}}); }), Contains("[clip_range]"));
  CHECK_THAT(message_of([&] { clip({x}); }), Contains("the attribute low is missing  [op_attribute]"));
  CHECK_THAT(message_of([&] { clip({x, x}, {{"low", 0.0}}); }), Contains("[op_arity]"));
  CHECK_THAT(clip.document(), Contains("### `my.clip`") && Contains("a matrix limited to low .. high.") &&
                                  Contains("| `high` | number | 1.0 | the largest value |") &&
                                  Contains("`clip_rank`") && Contains("expands into clamp") &&
                                  Contains("in mixed precision: per op of its expansion"));
  CHECK_THAT(make_swish().document(), Contains("### `my.swish`"));
}

TEST_CASE("an error in the ops of the forward is reported where the op is used, at build time", "[custom_op]") {
  const CustomOp product = custom_op("my.product", [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  const int made = __LINE__ - 1;
  Graph g{"wrong"};
  const Tensor a = g.input("a", f32, {2, Dim("k", 3)}), b = g.input("b", f32, {4, 5});
  const int line = __LINE__ + 1;
  const std::string text = message_of([&] { product(a, b); });
  CHECK_THAT(text, Contains(fmt::format("custom_op_test.cpp:{}: matmul: a: f32[2, k=3] and b", line)) &&
                       Contains("[matmul_inner]") &&
                       Contains(fmt::format("in the forward of my.product, made at custom_op_test.cpp:{}", made)));
  CHECK_THAT(message_of([&] { product(a, Tensor()); }), Contains("my.product: operand 2 of 2 is empty"));
  CHECK_THAT(message_of([&] { product(std::vector<Tensor>()); }), Contains("[op_arity]"));
  Graph other{"other"};
  const Tensor stranger = other.input("x", f32, {3, 5});
  CHECK_THAT(message_of([&] { product(a, stranger); }), Contains("[op_other_graph]"));
  CHECK_THAT(message_of([&] { custom_op("my.leak", [&](const Tensor&) { return stranger; })(a); }),
             Contains("[op_other_graph]"));
  CHECK_THAT(message_of([&] { custom_op("my.empty", [](const Tensor&) { return Tensor(); })(a); }),
             Contains("my.empty: the forward gives an empty tensor  [tensor_empty]"));
}

TEST_CASE("dims that are only comparable at run time are checked at run time", "[custom_op]") {
  const CustomOp product = custom_op("my.product", [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  Graph g{"model"};
  const Tensor a = g.input("a", f64, {2, Dim("k")}), b = g.input("b", f64, {Dim("m"), 1});
  g.output("y", product(a, b));
  ir::verify(g.ir());
  REQUIRE(g.ir().checks.size() == 1);
  CHECK(g.ir().checks[0].label == "matmul_inner");
  const HostTensor rows = HostTensor::from({2, 2}, {1, 2, 3, 4}, f64);
  CHECK(ir::interpret(g.ir(), {{"a", rows}, {"b", HostTensor::from({2, 1}, {1, 1}, f64)}}).at("y").get(1) == 7);
  CHECK_THAT(
      message_of([&] { ir::interpret(g.ir(), {{"a", rows}, {"b", HostTensor::from({3, 1}, {1, 1, 1}, f64)}}); }),
      Contains("[matmul_inner]"));
}

TEST_CASE("rejects a forward that is impure, or whose type differs from the rule", "[custom_op]") {
  Graph g{"wrong"};
  const Tensor x = g.input("x", f32, {2, 3});
  const Tensor state = g.random_state();
  const CustomOp noisy = custom_op("my.noisy", [](const Tensor& a, const Tensor& s) { return dropout(a, s, 0.5); });
  CHECK_THAT(message_of([&] { noisy(x, state); }), Contains("[custom_random]"));
  CHECK_THAT(message_of([&] {
               custom_op("my.grows", [](const Tensor& a) { return a + a.graph().parameter("w", f32, {3}); })(x);
             }),
             Contains("[tensor_graph]"));
  CustomOpRecord record = clip_record();
  record.forward = [](std::span<const Tensor> a, const ir::Attributes&) { return a[0].sum(0); };
  const int made = __LINE__ + 1;
  const CustomOp sums(record);
  CHECK_THAT(message_of([&] { sums({x}, {{"low", 0.0}}); }),
             Contains("my.clip: the rule gives f32[2, 3], the forward f32[3]  [custom_type]") &&
                 Contains(fmt::format("made at custom_op_test.cpp:{}", made)));
}

TEST_CASE("a backward returns a gradient of the operand type for each operand", "[custom_op]") {
  const auto forward = [](const Tensor& a, const Tensor& b) { return a * b.to(f32); };
  using Found = std::vector<Tensor>;
  const auto with = [&](const std::function<Found(const Tensor&)>& backward) {
    Graph g{"wrong"};
    const Tensor x = g.input("x", f32, {2}), ids = g.input("ids", i64, {2});
    const CustomOp op = custom_op(
        "my.op", forward, [&](std::span<const Tensor>, const Tensor&, const Tensor& d) { return backward(d); });
    return message_of([&] { (void)grad(op(x, ids).sum(), {x}); });
  };
  CHECK(with([](const Tensor& d) { return Found{d, Tensor()}; }) == "no error");
  CHECK_THAT(with([](const Tensor& d) { return Found{d}; }),
             Contains("the backward gives 1 gradients for 2 operands  [custom_gradient]") &&
                 Contains("gradient of custom_op_test.cpp:") && Contains("in the backward of my.op"));
  CHECK_THAT(with([](const Tensor& d) { return Found{d.to(f64), d}; }),
             Contains("the gradient of operand 1 is f64[2], the operand f32[2]  [custom_gradient]"));
  CHECK_THAT(with([](const Tensor& d) { return Found{d.sum(), d}; }), Contains("is f32[], the operand f32[2]"));
  CHECK_THAT(with([](const Tensor&) { return Found{Tensor(), Tensor()}; }), Contains("[grad_wrt_unused]"));
  CustomOpRecord record = clip_record();
  record.backward = {};
  record.not_differentiable = "it is a table";
  const CustomOp table(record);
  Graph g{"wrong"};
  const Tensor matrix = g.input("m", f32, {2, 2});
  CHECK_THAT(message_of([&] { (void)grad(table({matrix}, {{"low", 0.0}}).sum(), {matrix}); }),
             Contains("it is a table"));
}

TEST_CASE("views in a forward copy if the strides do not allow a view", "[custom_op]") {
  const CustomOp flat = custom_op("my.flat", [](const Tensor& x) { return x.view({6}) * 2; });
  const CustomOp transposed = custom_op("my.transposed", [](const Tensor& x) { return x.transpose(0, 1); });
  Graph g{"model"};
  const Tensor x = g.input("x", f64, {3, 2});
  const Tensor y = flat(x.transpose(0, 1));
  g.output("y", y);
  g.output("grad", grad((y * y).sum(), {x})[0]);
  CHECK(transposed(x).value().type().is_contiguous());
  g.output("z", transposed(x));
  const Tensors found = ir::interpret(g.ir(), {{"x", HostTensor::from({3, 2}, {1, 2, 3, 4, 5, 6}, f64)}});
  CHECK(found.at("y").get(1) == 6);
  CHECK(found.at("z").get(1) == 3);
  CHECK(found.at("grad").get(1) == 16);
}

TEST_CASE("text with custom ops parses with an OpSet that contains them", "[custom_op]") {
  const CustomOp swish = make_swish(), clip(clip_record());
  Graph g{"model"};
  const Tensor x = g.input("x", f32, {Dim("n"), 4}), beta = g.parameter("beta", f32, {4});
  g.output("y", clip({swish(x, beta)}, {{"low", -1.0}, {"high", 2.0}}));
  const std::string text = ir::print(g.ir());
  const ir::Graph again = ir::parse_graph(text, ir::OpSet{swish, clip}, "model.lathe");
  lathe::test::check_same_graph(g.ir(), again, {.locations = true, .names = true});
  CHECK(ir::print(again) == text);
  // A rule rejects text like it rejects a program, at the line of the text.
  const std::string wrong = "graph @g(input %x: f32[4]) {\n  %1 = my.clip %x {low=0.0}\n}";
  CHECK_THAT(message_of([&] { ir::parse_graph(wrong, ir::OpSet{clip}, "wrong.lathe"); }),
             Contains("wrong.lathe:2: my.clip: f32[4] is no matrix  [clip_rank]"));
}

TEST_CASE("an unknown op name in a text is an error, with a hint about custom ops", "[custom_op]") {
  const auto error = [](const std::string& op, const ir::OpSet& ops) {
    return message_of(
        [&] { ir::parse_graph("graph @g(input %x: f32[4]) {\n  %1 = " + op + " %x\n}", ops, "model.lathe"); });
  };
  const std::string own =
      "a name with a dot is that of a program's own op: give parse_graph an OpSet that has it, or the command "
      "--ops\n";
  CHECK_THAT(error("my.swish", {}), Contains("model.lathe:2:8: there is no op 'my.swish'\n  " + own));
  CHECK_THAT(error("my.softmx", {}), Contains("did you mean 'softmax'?\n  " + own));
  CHECK_THAT(error("my.swsh", {make_swish()}), Contains("did you mean 'my.swish'?\n  " + own));
  CHECK_THAT(error("softmx", {make_swish()}), Contains("did you mean 'softmax'?\n") && !Contains("OpSet"));
}

TEST_CASE("an op name refers to one op", "[custom_op]") {
  const auto named = [](std::string_view name) {
    return message_of([&] { custom_op(name, [](const Tensor& x) { return x; }); });
  };
  const std::string refused = "is no name for an op of a program  [op_name]";
  for (const char* name : {"softmax", "swish", "", "my.", ".my", "my..op", "my op", "my.o-p", "1.op"}) {
    INFO(name);
    CHECK_THAT(named(name), Contains(refused) && Contains("custom_op_test.cpp:"));
  }
  CHECK(named("a.b.c_2") == "no error");
  CHECK_THAT(message_of([] { CustomOp(CustomOpRecord{.name = "my.op"}); }), Contains("my.op has no forward"));
  const CustomOp one = make_swish(), other = make_swish();
  const std::string made = one.record().owned->definition().loc.place();
  CHECK_THAT(message_of([&] { ir::OpSet{one, other}; }), Contains("there are two ops named my.swish  [op_name]"));
  CHECK(message_of([&] { ir::OpSet{one, one}; }) == "no error");
  CHECK_THAT(message_of([&] { ir::OpSet{&ir::ops::softmax}; }), Contains("'softmax' is no name for an op of a"));
  Graph g{"model"};
  const Tensor x = g.input("x", f32, {2});
  (void)one(x, x);
  CHECK_THAT(message_of([&] { (void)other(x, x); }),
             Contains("@model has another op of this name, made at " + made + "  [op_name]"));
}

TEST_CASE("a graph keeps its custom ops alive", "[custom_op]") {
  std::weak_ptr<int> state;
  ir::Graph graph;
  std::string text;
  ir::OpSet ops;
  {
    const auto three = std::make_shared<int>(3);
    state = three;
    const CustomOp times = custom_op("my.times", [three](const Tensor& x) { return x * *three; });
    Graph g{"model"};
    const Tensor x = g.input("x", f64, {1});
    g.output("y", times(x));
    g.output("grad", grad(times(x).sum(), {x})[0]);
    graph = g.finish();
    ops.add(times);
  }
  CHECK(ir::interpret(graph, {{"x", numbers({5})}}).at("y").get(0) == 15);
  ir::Graph again = ir::parse_graph(ir::print(graph), ops);
  graph = {};
  ops = {};
  CHECK(!state.expired());
  CHECK(ir::interpret(again, {{"x", numbers({5})}}).at("grad").get(0) == 3);
  again = {};
  CHECK(state.expired());
}

TEST_CASE("custom ops train", "[custom_op]") {
  const CustomOp swish = make_swish();
  Graph g{"model"};
  const Tensor x = g.input("x", f64, {Dim("n"), 2}), beta = g.parameter("beta", f64, {2});
  const Tensor w = g.parameter("w", f64, {2});
  const Tensor loss = mse_loss(matmul(swish(x, beta), w), x.sum(-1));
  const ir::Graph step = training_step(g, loss, AdamW{.lr = 0.1, .weight_decay = 0});
  ir::verify(step);
  Tensors values;
  for (const ir::ValueId id : step.arguments())
    values.emplace(step[id].name, HostTensor(step[id].type.dtype, step[id].type.shape.evaluate({{"n", 3}})));
  values.insert_or_assign("beta", numbers({1, 1}));
  const HostTensor rows = HostTensor::from({3, 2}, {1, 2, 0.5, 0.1, 2, 1}, f64);
  double first = 0, last = 0;
  for (int i = 0; i < 50; ++i) {
    Tensors arguments = values;
    arguments.insert_or_assign("x", rows);
    const Tensors results = ir::interpret(step, arguments);
    for (const ir::Update& update : step.updates) {
      const std::string& name = step[update.state].name;
      values.insert_or_assign(name, results.at(name));
    }
    last = results.at("loss").get(0);
    if (i == 0) first = last;
  }
  CHECK(last < first / 10);
}
