#include "bench/cases/op_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"

namespace lathe::bench {

namespace {

/// A state with standard normal values; beyond the first million they repeat.
Tensor random_state(Graph& g, OpCase& made, const std::string& name, const std::vector<std::int64_t>& sizes,
                    DType dtype) {
  HostTensor& values = made.states.set(name, HostTensor(dtype, sizes));
  const HostTensor some = initial_value(Init::normal({.deviation = 1}), name, dtype,
                                        {std::min<std::int64_t>(values.numel(), 1 << 20)}, 1);
  for (std::size_t at = 0; at < values.bytes(); at += some.bytes())
    std::memcpy(values.data() + at, some.data(), std::min(some.bytes(), values.bytes() - at));
  Shape shape;
  for (const std::int64_t size : sizes) shape.push_back(Dim(size));
  return g.state(name, dtype, shape);
}

/// Stores a result in its own state.
void keep(Graph& g, OpCase& made, const std::string& name, const Tensor& value) {
  std::vector<std::int64_t> sizes;
  for (int d = 0; d < value.rank(); ++d) sizes.push_back(*value.shape()[d].value());
  made.states.set(name, HostTensor(value.dtype(), sizes));
  g.update(g.state(name, value.dtype(), value.shape()), value);
}

}  // namespace

std::vector<ProductShape> product_shapes() {
  std::vector<ProductShape> shapes;
  for (const std::int64_t n : {1024, 2048, 4096})
    shapes.push_back({fmt::format("{}^3", n), n, n, n, Product::forward, 0.88});
  struct Layer {
    const char* name;
    std::int64_t n, k;
  };
  for (const std::int64_t m : {256, 1024})
    for (const Layer& layer : {Layer{"qkv", 2304, 768}, {"proj", 768, 768}, {"fc", 3072, 768}, {"out", 768, 3072}})
      for (const auto& [suffix, product] :
           {std::pair{"", Product::forward}, {" dX", Product::input_gradient}, {" dW", Product::weight_gradient}})
        shapes.push_back({fmt::format("{}{}", layer.name, suffix), m, layer.n, layer.k, product, 0.8});
  shapes.push_back({"lm_head", 256, 50257, 768, Product::forward, 0.8});
  for (const std::int64_t m : {1, 8, 32}) shapes.push_back({"few rows", m, 3072, 768, Product::forward, 0});
  return shapes;
}

OpCase product_case(const ProductShape& shape) {
  OpCase made;
  Graph g("product");
  const auto x = [&] { return random_state(g, made, "x", {shape.m, shape.k}, shape.dtype); };
  const auto w = [&] { return random_state(g, made, "W", {shape.n, shape.k}, shape.dtype); };
  const auto dy = [&] { return random_state(g, made, "dy", {shape.m, shape.n}, shape.dtype); };
  switch (shape.product) {
    case Product::forward: keep(g, made, "y", linear(x(), w())); break;
    case Product::input_gradient: keep(g, made, "dX", matmul(dy(), w())); break;
    case Product::weight_gradient: keep(g, made, "dW", matmul(dy().transpose(0, 1), x())); break;
  }
  made.flops = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
  made.graph = g.finish();
  return made;
}

std::string AttentionShape::name() const {
  return fmt::format("B={} h={} S={} d={}{}", batch, heads, length, d, causal ? " causal" : "");
}

std::vector<AttentionShape> attention_shapes(bool full) {
  std::vector<AttentionShape> shapes;
  for (const std::int64_t d : {64, 128})
    for (const bool causal : {true, false})
      for (std::int64_t length = 128; length <= (full ? 8192 : 2048); length *= 2)
        shapes.push_back({.length = length, .d = d, .causal = causal});
  return shapes;
}

OpCase attention_case(const AttentionShape& s, bool backward) {
  OpCase made;
  Graph g("attention");
  const std::vector<std::int64_t> sizes = {s.batch, s.heads, s.length, s.d};
  const std::int64_t key_heads = s.heads / s.groups;
  const Tensor q = random_state(g, made, "q", sizes, s.dtype),
               k = random_state(g, made, "k", {s.batch, key_heads, s.length, s.d}, s.dtype),
               v = random_state(g, made, "v", {s.batch, key_heads, s.length, s.d}, s.dtype);
  const auto shared = [&](const Tensor& x) { return s.groups > 1 ? x.repeat_interleave(s.groups, 1) : x; };
  Tensor scores = matmul(q, shared(k).transpose(-2, -1)) / std::sqrt(static_cast<double>(s.d));  // [B, h, S, S]
  if (s.causal)
    scores =
        scores.masked_fill(~g.causal_mask(Dim(s.length), Dim(s.length)), -std::numeric_limits<double>::infinity());
  if (s.window > 0)
    scores = scores.masked_fill(g.causal_mask(Dim(s.length), Dim(s.length), -s.window),
                                -std::numeric_limits<double>::infinity());
  const Tensor y = matmul(softmax(scores, -1), shared(v));  // [B, h, S, d]
  keep(g, made, "y", y);
  if (backward) {
    // As in a model, the gradient of y depends on y, so that the passes cannot fuse forward and backward.
    const Tensor dy = y * random_state(g, made, "dy", sizes, s.dtype);
    if (s.stores_gradient) keep(g, made, "gradient_y", dy);
    const std::vector<Tensor> gradients = grad(y, {q, k, v}, dy);
    for (std::size_t i = 0; i < 3; ++i) keep(g, made, fmt::format("gradient_{}", i), gradients[i]);
  }
  const double columns = s.window > 0 ? static_cast<double>(std::min(s.window, s.length / 2))
                         : s.causal   ? 0.5 * static_cast<double>(s.length)
                                      : static_cast<double>(s.length);
  made.flops = (backward ? 3.5 : 1) * 4 * static_cast<double>(s.batch * s.heads * s.d) *
               static_cast<double>(s.length) * columns;
  made.graph = g.finish();
  return made;
}

OpCase convolution_case(const ConvolutionShape& s, bool backward) {
  OpCase made;
  Graph g("convolution");
  std::vector<std::int64_t> sizes = {s.batch, s.in}, kernel = {s.out, s.in};
  double flops = 2 * static_cast<double>(s.batch * s.in * s.out);
  for (int i = 0; i < s.spatial; ++i) {
    sizes.push_back(s.size);
    kernel.push_back(s.kernel);
    flops *= static_cast<double>(((s.size + 2 * s.padding - s.kernel) / s.stride + 1) * s.kernel);
  }
  const Tensor x = random_state(g, made, "x", sizes, f32), w = random_state(g, made, "w", kernel, f32);
  const ConvOptions options{.stride = s.stride, .padding = s.padding};
  const Tensor y = relu(s.spatial == 1 ? conv1d(x, w, options) : conv2d(x, w, options));
  keep(g, made, "y", y);
  if (backward) {
    const std::vector<Tensor> gradients = grad(y, {x, w}, y * 0.5);
    keep(g, made, "gradient_x", gradients[0]);
    keep(g, made, "gradient_w", gradients[1]);
  }
  made.flops = (backward ? 3 : 1) * flops;
  made.graph = g.finish();
  return made;
}

}  // namespace lathe::bench
