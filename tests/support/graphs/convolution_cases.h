#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "frontend/dsl.h"

/// Convolutions, pooling and resizing with their gradients, as in tests/frontend/convolution/make_cases.py.
namespace lathe::test {

struct ConvolutionCase {
  std::string name;
  std::vector<std::vector<std::int64_t>> operands;  ///< sizes of x, and of the weight and the bias
  std::function<Tensor(const std::vector<Tensor>&)> build;

  Shape shape(std::size_t operand) const {
    return Shape(std::vector<Dim>(operands[operand].begin(), operands[operand].end()));
  }

  /// A graph with the inputs "0", "1", .., the result "y" and the gradients "0.grad", .. of
  /// sum(y * cos(0.3 * position)).
  ir::Graph graph(DType dtype) const {
    Graph g{"spatial"};
    std::vector<Tensor> inputs;
    for (std::size_t k = 0; k < operands.size(); ++k) inputs.push_back(g.input(std::to_string(k), dtype, shape(k)));
    const Tensor y = build(inputs);
    const Dim count = y.shape().numel().unnamed();
    const Tensor coefficients = cos(g.arange(count, dtype) * 0.3).view(y.shape());
    const std::vector<Tensor> gradients = grad((y * coefficients).sum(), inputs);
    g.output("y", y);
    for (std::size_t k = 0; k < gradients.size(); ++k) g.output(std::to_string(k) + ".grad", gradients[k]);
    return g.finish();
  }

  /// Rounded to tenths, so that windows have equal elements.
  Tensors arguments(DType dtype) const {
    Tensors found;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      HostTensor tensor(dtype, operands[k]);
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        tensor.set(i,
                   std::nearbyint(10 * std::sin(1.0 + static_cast<double>(k) + 1.7 * static_cast<double>(i))) / 10);
      found.set(std::to_string(k), std::move(tensor));
    }
    return found;
  }
};

/// Pools, padding, resizing and norms.
inline std::vector<ConvolutionCase> pooling_cases() {
  using Ts = const std::vector<Tensor>&;
  return {
      {"max_pool1d", {{2, 2, 9}}, [](Ts t) { return max_pool1d(t[0], {.size = 3, .stride = 2, .padding = 1}); }},
      {"max_pool2d",
       {{1, 2, 7, 8}},
       [](Ts t) { return max_pool2d(t[0], {.size = {3, 2}, .stride = 2, .padding = {1, 0}}); }},
      {"max_pool2d of equal elements",
       {{1, 2, 7, 8}},
       [](Ts t) { return max_pool2d(relu(t[0]), {.size = 3, .stride = 2, .padding = 1}); }},
      {"avg_pool1d", {{1, 2, 9}}, [](Ts t) { return avg_pool1d(t[0], {.size = 4, .stride = 3, .padding = 2}); }},
      {"avg_pool2d",
       {{1, 2, 7, 6}},
       [](Ts t) { return avg_pool2d(t[0], {.size = 3, .stride = 2, .padding = 1, .count_padding = false}); }},
      {"adaptive_avg_pool2d", {{1, 2, 7, 5}}, [](Ts t) { return adaptive_avg_pool2d(t[0], {3, 1}); }},
      {"reflect", {{2, 3, 6}}, [](Ts t) { return pad(t[0], -1, {.low = 2, .high = 1, .mode = PadMode::reflect}); }},
      {"replicate",
       {{2, 3, 6}},
       [](Ts t) { return pad(t[0], -1, {.low = 2, .high = 3, .mode = PadMode::replicate}); }},
      {"circular", {{2, 3, 6}}, [](Ts t) { return pad(t[0], -1, {.low = 2, .high = 3, .mode = PadMode::circular}); }},
      {"nearest", {{1, 2, 5, 6}}, [](Ts t) { return interpolate(t[0], {.size = {10, 4}}); }},
      {"bilinear",
       {{1, 2, 5, 6}},
       [](Ts t) { return interpolate(t[0], {.size = {10, 7}, .mode = Interpolation::linear}); }},
      {"bilinear with aligned corners",
       {{1, 2, 5, 6}},
       [](Ts t) {
         return interpolate(t[0], {.size = {10, 4}, .mode = Interpolation::linear, .align_corners = true});
       }},
      {"group_norm", {{2, 4, 3, 5}, {4}, {4}}, [](Ts t) { return group_norm(t[0], 2, t[1], t[2]); }},
      {"batch_norm",
       {{3, 4, 5}, {4}, {4}},
       [](Ts t) {
         // The layer, with the operands in place of its parameters.
         const nn::Module root;
         const nn::BatchNorm layer(root, "norm", 4, {.dtype = t[0].dtype()});
         const nn::Substitution replaced(layer, {{"norm.weight", t[1]}, {"norm.bias", t[2]}});
         return layer(t[0]);
       }},
  };
}

inline std::vector<ConvolutionCase> convolution_cases() {
  using Ts = const std::vector<Tensor>&;
  std::vector<ConvolutionCase> cases{
      {"conv1d", {{2, 3, 9}, {4, 3, 5}, {4}}, [](Ts t) { return conv1d(t[0], t[1], t[2], {.padding = 2}); }},
      {"conv1d strided",
       {{1, 2, 11}, {3, 2, 3}},
       [](Ts t) { return conv1d(t[0], t[1], {.stride = 2, .padding = 1, .dilation = 2}); }},
      {"conv1d causal depthwise",
       {{2, 4, 7}, {4, 1, 4}, {4}},
       [](Ts t) { return conv1d(t[0], t[1], t[2], {.padding = 3, .groups = 4}).slice(-1, 0, 7); }},
      {"conv2d", {{2, 3, 6, 5}, {4, 3, 3, 3}, {4}}, [](Ts t) { return conv2d(t[0], t[1], t[2], {.padding = 1}); }},
      {"conv2d strided",
       {{1, 2, 8, 6}, {3, 2, 7, 2}, {3}},
       [](Ts t) { return conv2d(t[0], t[1], t[2], {.stride = {2, 1}, .padding = {3, 0}}); }},
      {"conv2d patches",
       {{1, 3, 8, 12}, {5, 3, 4, 4}, {5}},
       [](Ts t) { return conv2d(t[0], t[1], t[2], {.stride = 4}); }},
      {"conv2d grouped",
       {{1, 4, 6, 6}, {6, 2, 3, 3}},
       [](Ts t) { return conv2d(t[0], t[1], {.padding = 2, .dilation = 2, .groups = 2}); }},
      {"conv2d depthwise",
       {{2, 3, 7, 6}, {3, 1, 3, 3}, {3}},
       [](Ts t) { return conv2d(t[0], t[1], t[2], {.stride = 2, .padding = 1, .groups = 3}); }},
      {"conv3d", {{1, 2, 3, 4, 3}, {2, 2, 2, 3, 2}}, [](Ts t) { return conv3d(t[0], t[1], {.padding = {1, 0, 1}}); }},
      {"conv_transpose1d",
       {{2, 3, 4}, {3, 2, 3}, {2}},
       [](Ts t) {
         return conv_transpose1d(t[0], t[1], t[2], {.stride = 3, .padding = 1, .output_padding = 2, .dilation = 2});
       }},
      {"conv_transpose2d",
       {{1, 4, 3, 4}, {4, 3, 4, 4}, {6}},
       [](Ts t) { return conv_transpose2d(t[0], t[1], t[2], {.stride = 2, .padding = 1, .groups = 2}); }},
      {"conv_transpose3d",
       {{1, 4, 2, 3, 2}, {4, 1, 2, 2, 3}, {2}},
       [](Ts t) { return conv_transpose3d(t[0], t[1], t[2], {2, 1, 0, {1, 2, 1}, 2}); }},
  };
  for (ConvolutionCase& each : pooling_cases()) cases.push_back(std::move(each));
  return cases;
}

}  // namespace lathe::test
