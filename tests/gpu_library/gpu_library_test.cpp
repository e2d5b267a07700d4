#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/models/loss_graph.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/train/step.h"
#include "ir/tensor/text/parser.h"
#include "tests/gpu_library/library_case.h"
#include "tests/gpu_library/mock_machine.h"
#include "tests/support/graphs/small_models.h"

/// Libraries for GPUs have the launches and the bits of compile(), on mock GPUs.
using namespace lathe;
using namespace lathe::test;

namespace {

HostTensor integers(std::vector<std::int64_t> shape, std::int64_t bound) {
  HostTensor tensor(i64, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set_int(i, i * 7 % bound);
  return tensor;
}

HostTensor pattern(std::vector<std::int64_t> shape, DType dtype = f32) {
  HostTensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, 0.125 * static_cast<double>(i * 7 % 31 - 15));
  return tensor;
}

std::vector<MockLaunch> check(const ir::Graph& graph, const std::vector<Initializer>& initializers,
                              const DimBindings& most, const std::vector<LibraryCall>& calls) {
  if (!has_mock_compiler()) return {};
  return check_like_compiled(graph, initializers, calls, GpuLibrary::options(most, initializers));
}

/// One token per sequence through two layers, over the keys and values of the previous tokens.
ir::Graph decode_step() {
  const Dim B{"B"}, h{"h", 2}, d{"d", 16}, hidden{"hidden", h * d};
  Graph g("decode");
  Tensor x = g.input("x", f32, {B, 1, hidden});
  nn::KeyValueCache cache;
  cache.positions = g.input("positions", i64, {B, 1});
  const nn::AttentionContext context(Dim(1), cache);
  for (int i = 0; i < 2; ++i) {
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

LibraryCall decode_call(std::int64_t B, std::int64_t capacity, std::int64_t length) {
  LibraryCall call{{{"B", B}, {"capacity", capacity}, {"length", length}}, {}, {{"length", length}}};
  call.inputs.set("x", pattern({B, 1, 32}));
  HostTensor positions(i64, {B, 1});
  for (std::int64_t b = 0; b < B; ++b) positions.set_int(b, length - 1);
  call.inputs.set("positions", positions);
  return call;
}

}  // namespace

TEST_CASE("gpu library: a training step of a GPT has the launches and bits of compile()") {
  models::LossGraph forward = models::loss_graph(small_gpt(f32, 1));
  const ir::Graph step = training_step(forward.graph, "loss", AdamW{.lr = 1e-3}, {.clip_norm = 1});
  const auto call = [](std::int64_t B, std::int64_t T) {
    return LibraryCall{{{"B", B}, {"T", T}}, {{"tokens", integers({B, T + 1}, 31)}}};
  };
  check(step, forward.initializers, {{"B", 2}, {"T", 8}}, {call(2, 8), call(1, 5)});
}

TEST_CASE("gpu library: a decoding step has the launches and bits of compile()") {
  const ir::Graph graph = decode_step();
  std::vector<Initializer> initializers;
  for (int i = 0; i < 2; ++i)
    for (const char* const name : {"q", "k", "v", "o", "key_cache", "value_cache"})
      initializers.push_back({fmt::format("h.{}.{}", i, name), Init::normal({.deviation = 0.2})});
  check(graph, initializers, {{"B", 3}, {"capacity", 12}, {"length", 12}},
        {decode_call(3, 12, 12), decode_call(1, 9, 4)});
}

TEST_CASE("gpu library: a loop over rows of any alignment has the launches and bits of compile()") {
  const ir::Graph graph =
      ir::parse_graph(R"(graph @rnn(input %x: f32[T, n], input %h0: f32[n], parameter %w: f32[n]) {
  body @step(state %h: f32[n], input %x_t: f32[n], input %w: f32[n]) {
    %product = mul %h, %w
    %next = add %product, %x_t
    output "h" %next
    update %h <- %next
  }
  %last = loop %h0, %x, %w {body=@step, trips=T, sequences=1}
  %all = loop %h0, %x, %w {body=@step, trips=T, sequences=1, result=1}
  output "last" %last
  output "all" %all
})");
  const auto call = [](std::int64_t T, std::int64_t n) {
    return LibraryCall{{{"T", T}, {"n", n}}, {{"x", pattern({T, n})}, {"h0", pattern({n})}}};
  };
  const std::vector<Initializer> initializers{{"w", Init::normal({.deviation = 0.5})}};
  check(graph, initializers, {{"T", 6}, {"n", 16}}, {call(6, 16), call(4, 9), call(1, 9), call(0, 8)});
}

TEST_CASE("gpu library: a product by tensor maps has the launches and bits of compile()") {
  if (!has_mock_compiler()) return;
  Graph g("product");
  const Dim rows{"rows"}, sequences{"sequences"};
  const Tensor a = g.input("a", bf16, {sequences, rows, Dim(128)}), b = g.input("b", bf16, {Dim(128), Dim(256)});
  g.output("y", matmul(a, b));
  const ir::Graph graph = g.finish();
  const auto call = [](std::int64_t sequences, std::int64_t rows) {
    return LibraryCall{{{"rows", rows}, {"sequences", sequences}},
                       {{"a", pattern({sequences, rows, 128}, bf16)}, {"b", pattern({128, 256}, bf16)}}};
  };
  const std::vector<MockLaunch> launches =
      check(graph, {}, {{"rows", 128}, {"sequences", 2}}, {call(2, 128), call(1, 72)});
  for (const MockLaunch& launch : launches) CHECK(launch.maps == 2);
}

TEST_CASE("gpu library: constants and embedded parameters are copied to the device by init") {
  if (!has_mock_compiler()) return;
  const ir::Graph graph = ir::parse_graph(R"(graph @scaled(input %x: f32[n, 5], parameter %weight: f32[5]) {
  %steps = constant {dtype=f32, shape=[5], values=[1, 2, 4, 8, 3]}
  %1 = mul %x, %weight
  %2 = add %1, %steps
  output "y" %2
})");
  LibraryOptions options = GpuLibrary::options({{"n", 4}});
  HostTensor weight = pattern({5});
  options.embedded.set("weight", weight);
  GpuLibrary library(graph, options);
  CHECK(library.files().header.bytes.find("G_CONSTANT_BYTES") != std::string::npos);
  const HostTensor x = pattern({3, 5});
  const Tensors found = library.run({{{"n", 3}}, {{"x", x}}}, {});
  const double steps[] = {1, 2, 4, 8, 3};
  for (std::int64_t i = 0; i < x.numel(); ++i)
    CHECK(found.at("y").get(i) == x.get(i) * weight.get(i % 5) + steps[i % 5]);
}
