#include <catch2/catch.hpp>
#include <deque>

#include <fmt/core.h>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "frontend/models/loss_graph.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/train/training.h"
#include "ir/tensor/op/op.h"
#include "runtime/compile.h"
#include "tests/runtime/executable/count_allocations.h"
#include "tests/support/texts/error_label.h"

/// Allocations in runs of different lengths; results equal those of a fresh executable.
using namespace lathe;

namespace {

models::GptConfig small_gpt() {
  return {.vocab = Dim("vocab", 61),
          .context = Dim("context", 96),
          .d_model = Dim("d_model", 32),
          .h = Dim("h", 2),
          .layers = 3};
}

/// tokens [B, T+1] -> loss, in the caller's memory.
class LossRun {
 public:
  LossRun(bool trains, const DimBindings& reserve) : LossRun(models::loss_graph(small_gpt()), trains, reserve) {}

  /// Returns the number of allocations of a run.
  std::int64_t run(std::int64_t batch, std::int64_t length) {
    shape_ = {batch, length + 1};
    tokens_.resize(static_cast<std::size_t>(batch * (length + 1)));
    for (std::size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<std::int64_t>(1 + i * 7 % 60);
    ConstTensorRef& tokens = inputs_.find("tokens")->second;
    tokens.shape = shape_;
    tokens.data = reinterpret_cast<const std::byte*>(tokens_.data());
    const std::int64_t before = test::allocations();
    executable_.run(inputs_, outputs_);
    return test::allocations() - before;
  }
  float loss() const { return loss_; }
  Executable& executable() { return executable_; }

 private:
  LossRun(const models::LossGraph& model, bool trains, const DimBindings& reserve)
      : graph_(trains ? training_step(model.graph, "loss", AdamW{.lr = 1e-3}) : model.graph),
        executable_(compile(graph_, {.parameters = Parameters(initial_values(graph_, model.initializers, 1)),
                                     .reserve = reserve,
                                     .threads = 2})) {
    tokens_.reserve(4096);
    shape_.reserve(2);
    inputs_.emplace("tokens", ConstTensorRef{i64, {1, 2}, tokens_.data()});
    for (const ir::Output& output : graph_.outputs)
      outputs_.emplace(output.name, TensorRef{f32, {}, output.name == "loss" ? &loss_ : &others_.emplace_back()});
  }

  ir::Graph graph_;
  Executable executable_;
  std::vector<std::int64_t> tokens_, shape_;
  float loss_ = 0;
  std::deque<float> others_;
  InputRefs inputs_;
  OutputRefs outputs_;
};

/// One token per sequence through several layers, over the keys and values of the previous tokens.
ir::Graph decode_step(int layers) {
  const Dim B{"B"}, h{"h", 2}, d{"d", 16}, hidden{"hidden", h * d};
  Graph g("decode");
  Tensor x = g.input("x", f32, {B, 1, hidden});
  nn::KeyValueCache cache;
  cache.positions = g.input("positions", i64, {B, 1});
  const nn::AttentionContext context(Dim(1), cache);
  for (int i = 0; i < layers; ++i) {
    const auto scope = g.scope(fmt::format("h.{}", i));
    const auto heads = [&](const char* name) {
      return linear(x, g.parameter(name, f32, {hidden, hidden})).view({B, 1, h, d}).transpose(1, 2);
    };
    const Tensor y = context.attend(heads("q"), heads("k"), heads("v"), {.scale = 0.25});  // [B, h, 1, d]
    x = x + linear(y.transpose(1, 2).reshape({B, 1, hidden}), g.parameter("o", f32, {hidden, hidden}));
  }
  g.output("y", x);
  return g.finish();
}

HostTensor pattern(std::vector<std::int64_t> shape) {
  HostTensor tensor(f32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, 0.01 * static_cast<double>(i * 7 % 31 - 15));
  return tensor;
}

}  // namespace

TEST_CASE("lengths: after the first run, a step allocates nothing at any length up to the reserved ones") {
  for (const bool trains : {false, true}) {
    INFO((trains ? "training" : "loss"));
    LossRun reserved(trains, {{"B", 3}, {"T", 48}});
    (void)reserved.run(1, 5);
    for (const auto& [batch, length] : {std::pair{1, 5}, {1, 6}, {3, 48}, {2, 1}, {1, 47}, {3, 30}, {3, 48}, {1, 5}})
      CHECK(reserved.run(batch, length) == 0);
  }
}

TEST_CASE("lengths: without a reserve, only a new largest size allocates") {
  LossRun step(true, {});
  CHECK(step.run(2, 20) > 0);
  for (const std::int64_t length : {20, 7, 20, 19, 1}) CHECK(step.run(2, length) == 0);
  CHECK(step.run(2, 21) > 0);  // a larger arena
  CHECK(step.run(2, 20) == 0);
}

TEST_CASE("lengths: results do not depend on the lengths of earlier runs") {
  LossRun one(true, {{"B", 2}, {"T", 40}}), other(true, {});
  for (const auto& [batch, length] : {std::pair{1, 3}, {2, 17}, {1, 64}, {2, 2}, {2, 40}, {3, 9}, {1, 64}}) {
    (void)one.run(batch, length);
    (void)other.run(batch, length);
    INFO(batch << " x " << length);
    CHECK(one.loss() == other.loss());
  }
  for (const std::string& name : one.executable().parameters().names())
    CHECK(one.executable().parameters().get(name).same_bits(other.executable().parameters().get(name)));
}

TEST_CASE("lengths: decoding allocates nothing as the attended length grows") {
  constexpr std::int64_t capacity = 32, batch = 2;
  const ir::Graph graph = decode_step(2);
  Parameters store;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value == "input") continue;
    store.set(node.name, pattern(node.type.shape.evaluate({{"B", batch}, {"capacity", capacity}})));
  }
  Executable step = compile(graph, {.parameters = store, .threads = 2});
  const HostTensor x = pattern({batch, 1, 32});
  HostTensor positions(i64, {batch, 1}), y(f32, {batch, 1, 32});
  const InputRefs inputs{{"x", x}, {"positions", positions}};
  const OutputRefs outputs{{"y", y}};
  DimBindings dims{{"length", 1}};
  const auto run = [&](std::int64_t length) {
    for (std::int64_t b = 0; b < batch; ++b) positions.set_int(b, length - 1);
    dims.find("length")->second = length;
    const std::int64_t before = test::allocations();
    step.run(inputs, outputs, dims);
    return test::allocations() - before;
  };
  (void)run(capacity);
  for (std::int64_t length = 1; length <= capacity; ++length) CHECK(run(length) == 0);
  CHECK(test::error_label([&] { (void)run(capacity + 1); }) != "");
  CHECK(test::error_label([&] { (void)run(-1); }) == "dim_negative");
  CHECK(run(3) > 0);  // dims are bound again after an error
  CHECK(run(4) == 0);
}

TEST_CASE("lengths: inputs that do not fit give the same errors as in the first run") {
  LossRun step(false, {});
  (void)step.run(2, 5);
  const std::vector<std::int64_t> tokens(64, 1);
  float loss = 0;
  const auto label = [&](const std::vector<std::int64_t>& shape) {
    return test::error_label([&] {
      step.executable().run(InputRefs{{"tokens", {i64, shape, tokens.data()}}},
                            OutputRefs{{"loss", {f32, {}, &loss}}});
    });
  };
  CHECK(label({2, 5, 1}) == "argument_rank");
  CHECK(label({2, 0}) == "dim_conflict");
  CHECK(step.run(2, 5) > 0);
  CHECK(step.run(2, 4) == 0);
}
