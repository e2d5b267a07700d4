#include "models/pretrained/quantize_weights.h"

#include <numeric>
#include <utility>

#include "frontend/nn/linear.h"
#include "runtime/parameters/quantize.h"

namespace lathe::pretrained {

namespace {

constexpr std::int64_t largest_block = 64, smallest_block = 16;
constexpr std::int64_t fewest_rows = 16;

/// `transposed`: matmuls reduce over the first dim.
void quantize_parameter(ModelFiles& files, const nn::Parameter& parameter, bool transposed) {
  const std::int64_t n = parameter.shape()[transposed ? 0 : 1].value().value_or(0);
  const std::int64_t block = std::gcd(n, largest_block);
  const std::int64_t rows = parameter.shape()[transposed ? 1 : 0].value().value_or(0);
  if (block < smallest_block || rows < fewest_rows || parameter.is_quantized()) return;
  QuantizedMatrix quantized = quantize(files.weights.get(parameter.name()), block, transposed);
  files.weights.set(parameter.name(), std::move(quantized.numbers));
  parameter.store_quantized(block, transposed);
  files.weights.set(parameter.scales_name(), std::move(quantized.scales));
}

void quantize_layers(ModelFiles& files, const nn::Module& module) {
  if (const auto layer = nn::Linear::of(module)) quantize_parameter(files, layer->weight(), layer->in_out());
  for (const nn::Module& child : module.children()) quantize_layers(files, child);
}

}  // namespace

void quantize_weights(ModelFiles& files, const nn::Module& model, const std::optional<nn::Parameter>& table) {
  if (table) quantize_parameter(files, *table, false);
  quantize_layers(files, model);
}

}  // namespace lathe::pretrained
