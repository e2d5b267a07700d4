#include "frontend/nn/module.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <set>

#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/train/step.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"
#include "tests/support/graphs/source_lines.h"
#include "tests/support/texts/error_label.h"

using namespace lathe;

namespace {

models::GptConfig small(int layers = 2) {
  return {.vocab = Dim("vocab", 11),
          .context = Dim("context", 8),
          .d_model = Dim("d_model", 12),
          .h = Dim("h", 3),
          .layers = layers};
}

struct Mlp : nn::Layer<Mlp> {
  Mlp(const Module& parent, std::string_view name, const Dim& d)
      : Layer(parent, name, "Mlp"), up(*this, "up", d, d * 4), down(*this, "down", d * 4, d) {}
  Tensor forward(const Tensor& x) const { return down(relu(up(x))); }
  nn::Linear up, down;
};

/// x * gain + shift, written with the parameters themselves.
struct Affine : nn::Layer<Affine> {
  Affine(const Module& parent, std::string_view name, const Dim& d)
      : Layer(parent, name, "Affine"), gain(declare("gain", {d}, Init::ones())), shift(declare("shift", {d})) {}
  Tensor forward(const Tensor& x, double factor = 1) const { return x * gain * factor + shift; }
  Tensor product(const Tensor& x) const { return matmul(x, gain); }
  nn::Parameter gain, shift;
};

/// The first node of an op in a graph.
const ir::Node& node_of(const ir::Graph& graph, std::string_view op) {
  for (const ir::ValueId id : ir::all_values(graph))
    if (graph[id].op->name == op) return graph[id];
  throw InternalError("no such op");
}

struct Tower : nn::Module {
  explicit Tower(const Dim& d) : Module("Tower"), scale(declare("scale", f32, {}, Init::ones(), Where::current())) {
    for (const char* name : {"mlp.0", "mlp.1", "mlp.2"}) layers.emplace_back(*this, name, d);
  }
  Tensor operator()(Tensor x) const {
    for (const Mlp& layer : layers) x = x + layer(x) * scale.in(x);
    return x;
  }
  nn::Parameter scale;
  std::vector<Mlp> layers;
};

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : module.parameters()) names.push_back(parameter.name());
  return names;
}

}  // namespace

TEST_CASE("one model builds any number of graphs, with the same parameter names") {
  const models::Gpt model(small());
  const Dim B{"B"}, T{"T"};
  Graph train{"train"}, decode{"decode"};
  train.output("loss", model.loss(train.input("tokens", i64, {B, T + 1})));
  decode.output("logits", model.logits(decode.input("tokens", i64, {B, T})));
  for (const nn::Parameter& parameter : model.parameters()) {
    INFO(parameter.name());
    for (const ir::Graph& graph : {train.finish(), decode.finish()}) {
      const ir::ValueId found = graph.find_argument(parameter.name());
      REQUIRE(found.valid());
      CHECK(graph[found].type.shape == parameter.shape());
    }
  }
  CHECK(train.initializers().size() == model.parameters().size());
}

TEST_CASE("a model inside a graph matches the model by itself, with all parameters declared up front") {
  const Dim B{"B"}, T{"T"};
  Graph eager{"g"}, lazy{"g"};
  const models::Gpt within(eager, small());
  CHECK(eager.ir().arguments().size() == names_of(within).size());
  const models::Gpt apart(small());
  CHECK(lazy.ir().arguments().empty());
  CHECK(names_of(within) == names_of(apart));
  eager.output("y", within.logits(eager.input("tokens", i64, {B, T})));
  lazy.output("y", apart.logits(lazy.input("tokens", i64, {B, T})));
  CHECK(eager.ir().arguments().size() == lazy.ir().arguments().size());
}

TEST_CASE("custom modules: names, counts, initial values, the tree") {
  const Tower tower(Dim("d", 2));
  CHECK(names_of(tower) == std::vector<std::string>{"scale", "mlp.0.up.weight", "mlp.0.up.bias", "mlp.0.down.weight",
                                                    "mlp.0.down.bias", "mlp.1.up.weight", "mlp.1.up.bias",
                                                    "mlp.1.down.weight", "mlp.1.down.bias", "mlp.2.up.weight",
                                                    "mlp.2.up.bias", "mlp.2.down.weight", "mlp.2.down.bias"});
  CHECK(tower.count() == 1 + 3 * (16 + 8 + 16 + 2));
  const auto values = tower.initial_values(3);
  CHECK(values.size() == 13);
  CHECK(values.at("scale").get(0) == 1);
  CHECK(values.at("mlp.1.up.weight").shape() == std::vector<std::int64_t>{8, 2});
  CHECK_FALSE(values.at("mlp.1.up.weight").same_bits(values.at("mlp.0.up.weight")));
  tower.parameter("mlp.1.up.bias").freeze();
  CHECK(tower.print_tree() == R"(Tower  127
  scale  f32[]
  mlp.0: Mlp  42
    up: Linear  24
      weight  f32[8, d=2]
      bias  f32[8]
    down: Linear  18
      weight  f32[d=2, 8]
      bias  f32[d=2]
  mlp.1: Mlp  42
    up: Linear  24
      weight  f32[8, d=2]
      bias  f32[8]  frozen
    down: Linear  18
      weight  f32[d=2, 8]
      bias  f32[d=2]
  mlp.2: Mlp  42
    up: Linear  24
      weight  f32[8, d=2]
      bias  f32[8]
    down: Linear  18
      weight  f32[d=2, 8]
      bias  f32[d=2]
)");
  tower.freeze(false);
  CHECK(tower.print_tree().find("mlp.0 .. 2: Mlp  42 each\n    up: Linear  24\n") != std::string::npos);
}

TEST_CASE("training skips frozen parameters, and groups are selected by name") {
  const models::Gpt model(small());
  Graph g{"train"};
  const Tensor loss = model.loss(g.input("tokens", i64, {Dim("B"), Dim("T") + 1}));
  model.parameter("wte").freeze();
  model.children()[1].freeze();  // wpe
  const auto updated_by = [&](const TrainingOptions& options) {
    const ir::Graph step = training_step(g, loss, SGD{.lr = 0.1}, options);
    std::set<std::string> names;
    for (const ir::Update& update : step.updates) names.insert(step[update.state].name);
    return names;
  };
  for (const bool chosen : {false, true}) {
    const std::set<std::string> updated =
        updated_by(chosen ? TrainingOptions{.trainable = nn::trainable(model)} : TrainingOptions{});
    CHECK_FALSE(updated.contains("wte"));
    CHECK_FALSE(updated.contains("wpe"));
    CHECK(updated.contains("h.0.attn.c_attn.weight"));
  }
  CHECK(updated_by({.precision = bf16}) == updated_by({}));
  CHECK_FALSE(updated_by({.trainable = names_with({"wpe", "ln_f"})}).contains("wpe"));
  model.children()[1].freeze(false);  // a step that is built later trains it
  CHECK(updated_by({}).contains("wpe"));
  model.freeze();
  std::string text;
  CHECK(test::error_label([&] { updated_by({}); }, &text) == "train_parameters");
  CHECK_THAT(text, Catch::Contains("frozen: ") && Catch::Contains("wpe"));
  model.freeze(false);

  model.parameter("ln_f.weight").set_group("norms");
  const ParameterFilter norms = nn::in_group(model, "norms");
  int count = 0;
  for (const ir::ValueId id : g.ir().arguments()) count += norms(g.ir()[id]);
  CHECK(count == 1);
}

TEST_CASE("name conflicts are errors that contain the name") {
  const nn::Module root;
  const nn::Linear first(root, "fc", 2, 3);
  CHECK_THROWS_WITH(nn::Linear(root, "fc", 2, 3),
                    Catch::Contains("[parameter_name]") && Catch::Contains("fc.weight"));
  Graph g{"g"};
  const Tensor x = g.input("x", f32, {4, 2});
  (void)g.parameter("fc.weight", f32, {5, 2});
  CHECK_THROWS_WITH(first(x), Catch::Contains("[argument_name]") && Catch::Contains("f32[3, 2]"));
  CHECK_THROWS_WITH(root.parameter("fc.wieght"), Catch::Contains("did you mean 'fc.weight'"));
}

TEST_CASE("a module has the dtype of its parent, unless it is given its own") {
  const Dim d("d", 4);
  const nn::Module root("Model", f64);
  const Mlp mlp(root, "mlp", d);
  const nn::Linear narrow(root, "narrow", d, d, {.dtype = bf16});
  const nn::LayerNorm norm(mlp, "norm", d);
  const Affine affine(root, "affine", d);
  CHECK(mlp.up.weight().dtype() == f64);
  CHECK(narrow.weight().dtype() == bf16);
  CHECK(narrow.bias()->dtype() == bf16);
  CHECK(norm.own_parameters()[0].dtype() == f64);
  CHECK(affine.gain.dtype() == f64);
  CHECK(nn::Module("Model").dtype() == f32);
  Graph g{"g"};
  const nn::Linear in_graph(nn::Module(g, f16), "layer", d, d);
  CHECK(g.ir()[g.ir().find_argument("layer.weight")].type.dtype == f16);
  const models::Gpt gpt(nn::Module("Model", f64), small());
  for (const nn::Parameter& parameter : gpt.parameters()) CHECK(parameter.dtype() == f64);
}

TEST_CASE("ops of a layer are in its scope, at the lines of forward()") {
  const Dim d("d", 4);
  const nn::Module root("Model");
  const Mlp mlp(root, "h.0.mlp", d);
  Graph g{"g"};
  const Tensor x = g.input("x", f32, {3, d});
  const int line = __LINE__ + 1;
  g.output("y", exp(mlp(x)));
  CHECK(node_of(g.ir(), "relu").loc.scope() == "h.0.mlp");
  CHECK(node_of(g.ir(), "relu").loc.file() == "module_test.cpp");
  CHECK(node_of(g.ir(), "relu").loc.line() < line);
  CHECK(node_of(g.ir(), "linear").loc.scope() == "h.0.mlp.up");
  CHECK(node_of(g.ir(), "exp").loc.scope().empty());
  CHECK(node_of(g.ir(), "exp").loc.line() == line);
}

TEST_CASE("an error in a layer names the block") {
  const Dim d("d", 4);
  const nn::Module root("Model");
  const Affine affine(root, "h.3.affine", d);
  Graph g{"g"};
  const Tensor x = g.input("x", f32, {3, 5});
  CHECK_THROWS_WITH(affine(x), Catch::StartsWith("module_test.cpp:") && Catch::Contains("in h.3.affine"));
}

TEST_CASE("a parameter converts to a tensor while a graph is being built") {
  const Dim d("d", 4);
  const nn::Module root("Model");
  const Affine affine(root, "affine", d);
  for (const char* name : {"one", "other"}) {  // each call declares the parameters in its own graph
    Graph g{name};
    g.output("y", affine(g.input("x", f32, {3, d}), 2));
    CHECK(g.ir().find_argument("affine.gain").valid());
    CHECK(g.ir().find_argument("affine.shift").valid());
  }
  Graph g{"g"};
  const Affine in_graph(g, "affine", d);
  CHECK(Tensor(in_graph.gain).shape() == Shape{d});
  CHECK(in_graph.product(g.input("x", f32, {3, d})).shape() == Shape{3});

  std::string text;
  const int line = __LINE__ + 1;
  CHECK(test::error_label([&] { (void)Tensor(affine.gain); }, &text) == "parameter_graph");
  CHECK_THAT(text, Catch::StartsWith("module_test.cpp:" + std::to_string(line)) &&
                       Catch::Contains("affine.gain is used as a tensor where no graph is being built"));
  CHECK(test::error_label([&] { (void)affine.product(g.input("z", f32, {3, d})); }) == "parameter_graph");
  const nn::Linear matrix(root, "matrix", 8, 8);
  matrix.weight().store_quantized(4);
  CHECK(test::error_label([&] { (void)matrix.weight().here(); }) == "parameter_graph");
}

TEST_CASE("norms have a weight and a bias unless an option removes them") {
  const Dim d("d", 4);
  const nn::Module root("Model", f64);
  const nn::LayerNorm both(root, "both", d), weight(root, "weight", d, {.bias = false}),
      none(root, "none", d, {.weight = false});
  const nn::RmsNorm rms(root, "rms", d, {.weight = false});
  CHECK(names_of(root) == std::vector<std::string>{"both.weight", "both.bias", "weight.weight"});
  Graph g{"g"};
  const Tensor x = g.input("x", f64, {2, d});
  for (const auto& [name, y] :
       {std::pair{"both", both(x)}, {"weight", weight(x)}, {"none", none(x)}, {"rms", rms(x)}})
    g.output(name, y);
  const Tensors found = ir::interpret_named(g.finish(), [&] {
    Tensors arguments = root.initial_values(1);
    arguments.set("x", HostTensor::of<double>({2, 4}, {1, 2, 3, 4, -1, 0, 5, 2}));
    return arguments;
  }());
  CHECK(found.at("both").same_bits(found.at("none")));  // a weight of ones and a bias of zeros
  CHECK(found.at("weight").same_bits(found.at("none")));
  CHECK(found.at("rms").at({0, 1}) == Approx(2 / std::sqrt(7.5 + 1e-5)));
}

TEST_CASE("dropout updates the random state at the line that first draws from it") {
  Graph g{"g"};
  const int line = __LINE__ + 1;
  g.output("y", dropout(g.input("x", f32, {4}), 0.5));
  const ir::Node& advanced = g.ir()[g.ir().updates.at(0).value];
  CHECK(advanced.loc.file() == "module_test.cpp");
  CHECK(advanced.loc.line() == line);
}

TEST_CASE("a layer that a container constructs has no line, instead of that of the standard library") {
  const Dim d("d", 4);
  const nn::Module root("Model");
  std::optional<nn::Linear> constructed, assigned;
  constructed.emplace(root, "constructed", d, d);
  const int line = __LINE__ + 1;
  assigned = nn::Linear(root, "assigned", d, d);
  Graph g{"g"};
  const Tensor x = g.input("x", f32, {2, d});
  g.output("y", (*assigned)((*constructed)(x)));
  const ir::Graph graph = g.finish();
  for (const ir::ValueId id : ir::all_values(graph)) {
    const ir::Node& node = graph[id];
    INFO(node.name);
    if (node.name.starts_with("constructed.")) CHECK(node.loc.to_string() == "<unknown>");
    if (node.name.starts_with("assigned.")) CHECK(node.loc.to_string() == "module_test.cpp:" + std::to_string(line));
  }
  CHECK(test::without_lines(graph) == std::vector<std::string>{"constructed.weight", "constructed.bias"});
}
