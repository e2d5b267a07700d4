#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/dsl.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/printer.h"

using namespace lathe;

namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

const ir::Node& node(const Tensor& t) { return t.value().node(); }

}  // namespace

TEST_CASE("an attention written in the DSL keeps names, lines and shapes") {
  const Dim B{"nbatches"}, S{"n_seq"}, h{"h", 8}, d_k{"d_k", 64}, d_model{"d_model", h * d_k};
  Graph g{"mha"};
  const Tensor x = g.input("x", f32, {B, S, d_model});
  const Tensor W = g.parameter("W_q", f32, {d_model, d_model});
  const int line = __LINE__ + 1;
  const Tensor q = linear(x, W).view({B, S, h, d_k}).transpose(1, 2).named("q");
  CHECK(q.value().type().to_string() == "f32[nbatches, h=8, n_seq, d_k=64]");
  CHECK(node(q).loc.file() == "dsl_test.cpp");
  CHECK(node(q).loc.line() == line);
  CHECK(node(q).name == "q");
  CHECK(q.size(-1).to_string() == "d_k=64");
}

TEST_CASE("operators use the line of their first operand and convert numbers to the dtype") {
  Graph g{"ops"};
  const Dim n{"n"};
  const Tensor x = g.input("x", f64, {n}), mask = g.input("mask", i64, {n});
  const int line = __LINE__ + 1;
  const Tensor y = x / std::sqrt(64.0);
  CHECK(node(y).loc.line() == line);
  CHECK(y.dtype() == f64);
  const Tensor z = mask == 0;
  CHECK(node(z).loc.line() == line + 3);
  CHECK(z.dtype() == boolean);
  g.output("a", where(~(z | (mask > 2)), 2 - x * 3 + 1 / x, -x));
  const auto results = ir::interpret(g.finish(), {{"x", HostTensor::from({4}, {1, 2, 4, 8}, f64)},
                                                  {"mask", HostTensor::from_ints({4}, {0, 1, 2, 3})}});
  const HostTensor& a = results.at("a");
  CHECK(a.get(0) == -1);
  CHECK(a.get(1) == 2 - 6 + 0.5);
  CHECK(a.get(2) == 2 - 12 + 0.25);
  CHECK(a.get(3) == -8);
}

TEST_CASE("an error names the source line, the shapes and the rule") {
  Graph g{"wrong"};
  const Dim B{"B"};
  const Tensor a = g.input("a", f32, {B, Dim{"k", 3}}), b = g.input("b", f32, {Dim{"m", 4}, 5});
  const int line = __LINE__ + 1;
  const std::string text = message_of([&] { matmul(a, b); });
  CHECK(text.find("dsl_test.cpp:" + std::to_string(line) + ": matmul") == 0);
  CHECK(text.find("k=3") != std::string::npos);
  CHECK(text.find("m=4") != std::string::npos);
  CHECK(message_of([&] { (void)a.size(2); }).find("[dim_range]") != std::string::npos);
  CHECK(message_of([&] { einsum("ij->ij", std::vector<Tensor>{}); }).find("[op_arity]") != std::string::npos);
  CHECK(message_of([&] { (void)(a + b); }).find("dsl_test.cpp:" + std::to_string(__LINE__)) == 0);
}

TEST_CASE("scopes name parameters and locations, and modules use the line of their caller") {
  Graph g{"scopes"};
  const Dim B{"B"}, d{"d", 6};
  const Tensor x = g.input("x", f32, {B, d});
  const auto encoder = g.scope("encoder");
  {
    const auto first = g.scope("0");
    CHECK(g.scope_path() == "encoder.0");
    const nn::Linear fc(g, "fc", d, 4);
    CHECK(fc.weight().name() == "encoder.0.fc.weight");
    CHECK(node(fc.weight().in(g)).name == "encoder.0.fc.weight");
    const int line = __LINE__ + 1;
    const Tensor y = fc(x);
    CHECK(node(y).loc.line() == line);
    CHECK(node(y).loc.file() == "dsl_test.cpp");
    CHECK(node(y).loc.scope() == "encoder.0.fc");
  }
  CHECK(g.scope_path() == "encoder");
  const nn::LayerNorm norm(g, "norm", d);
  const Tensor wrong = g.input("wrong", f32, {B, 5});
  const int line = __LINE__ + 1;
  const std::string text = message_of([&] { norm(wrong); });
  CHECK(text.find("dsl_test.cpp:" + std::to_string(line)) == 0);
}

TEST_CASE("states are named by their scopes like parameters, except the single random state") {
  Graph g{"states"};
  const nn::Dropout outside(0.5);
  for (const std::string layer : {"0", "1"}) {
    const auto scope = g.scope("layers." + layer);
    const Tensor keys = g.state("keys", f32, {2}, Init::ones());
    CHECK(node(keys).name == "layers." + layer + ".keys");
    CHECK(g.random_state().value().id() == g.random_state().value().id());
    g.set_initializer("layers." + layer + ".keys", Init::constant(3));
  }
  const Tensors starts = initial_values(g.finish(), g.initializers(), 5);
  REQUIRE(starts.size() == 3);
  CHECK(starts.at("layers.1.keys").get(1) == 3);
  CHECK(starts.at("rng").get_int(0) == 5);
  // It does not matter where the random state is first requested.
  Graph inner{"inner"};
  const auto scope = inner.scope("block");
  CHECK(node(inner.random_state()).name == "rng");
}

TEST_CASE("naming a named value adds a view with the new name") {
  Graph g{"names"};
  const Tensor x = g.input("x", f32, {Dim{"B"}, 3});
  const Tensor a = exp(x).named("first"), b = exp(x).named("first"), c = exp(x).named("second");
  CHECK(a.value().id() == b.value().id());
  CHECK(node(a).name == "first");
  CHECK(node(c).name == "second");
  CHECK(c.shape() == x.shape());
}

TEST_CASE("all random ops share one state that advances by itself") {
  Graph g{"random"};
  const Tensor x = g.input("x", f32, {64});
  const nn::Dropout drop(0.5), never(0);
  CHECK(never(x).value().id() == x.value().id());
  g.output("a", drop(x));
  g.output("b", drop(x));
  CHECK(g.ir().updates.size() == 1);
  const ir::Graph graph = g.finish();
  Tensors arguments{{"x", HostTensor::from({64}, std::vector<double>(64, 1.0))},
                    {"rng", HostTensor::from_ints({2}, {7, 0})}};
  const auto first = ir::interpret(graph, arguments);
  CHECK(first.at("rng").get_int(1) == 1);
  CHECK_FALSE(first.at("a").same_bits(first.at("b")));
  arguments.insert_or_assign("rng", first.at("rng"));
  const auto second = ir::interpret(graph, arguments);
  CHECK_FALSE(first.at("a").same_bits(second.at("a")));
  CHECK_THROWS_AS(nn::Dropout(1.0), UserError);
}

TEST_CASE("a DSL graph prints its parameters with their scopes") {
  Graph g{"printed"};
  const Dim B{"B"}, d{"d", 4};
  const nn::Linear fc(g, "fc", d, d);
  g.output("y", relu(fc(g.input("x", f32, {B, d}))));
  const std::string text = ir::print(g.finish());
  CHECK(text.find("%fc.weight: f32[d=4, d=4]") != std::string::npos);
  CHECK(text.find("f32[B, d=4]") != std::string::npos);
}

TEST_CASE("the parameters of a graph can be used for differentiation") {
  Graph g{"parameters"};
  const Tensor x = g.input("x", f64, {2});
  const auto scope = g.scope("layer");
  const Tensor w = g.parameter("w", f64, {2}), b = g.parameter("b", f64, {});
  g.state("runs", f64, {});
  const std::vector<Tensor> found = g.parameters();
  REQUIRE(found.size() == 2);
  CHECK(found[0].value().id() == w.value().id());
  CHECK(node(found[1]).name == "layer.b");
  CHECK(grad((x * w + b).sum(), g.parameters())[1].shape() == Shape{});
}

TEST_CASE("gradients are tensors: a Hessian-vector product is the gradient of a gradient") {
  Graph g{"hessian"};
  const Tensor w = g.input("w", f64, {3}), v = g.input("v", f64, {3});
  const Tensor loss = (w * w * w).sum();
  const Tensor dw = grad(loss, {w})[0];
  g.output("dw", dw);
  g.output("hv", grad((dw * v).sum(), {w})[0]);
  g.output("vjp", grad(exp(w), {w}, v)[0]);
  const auto results = ir::interpret(
      g.finish(), {{"w", HostTensor::from({3}, {1, 2, 3}, f64)}, {"v", HostTensor::from({3}, {1, 0, -1}, f64)}});
  CHECK(results.at("dw").get(1) == Approx(12));
  CHECK(results.at("hv").get(0) == Approx(6));
  CHECK(results.at("hv").get(1) == Approx(0).margin(1e-12));
  CHECK(results.at("hv").get(2) == Approx(-18));
  CHECK(results.at("vjp").get(2) == Approx(-std::exp(3.0)));
  Graph other{"scalar"};
  const Tensor x = other.input("x", f64, {3});
  const Tensor twice = x * 2;
  const std::string here = "dsl_test.cpp:" + std::to_string(__LINE__ + 1);
  CHECK(message_of([&] { grad(twice, {x}); }).find(here + ": grad") == 0);
  CHECK(message_of([&] { training_step(other, twice, SGD{}); }).find("the loss (mul at dsl_test.cpp") !=
        std::string::npos);
  CHECK(message_of([&] { grad(x * 2, {x}); }).find("[grad_scalar]") != std::string::npos);
}
