#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/spatial/conv_ops.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

Tensor convolved(const OpCall& call, const Tensor& x, const ConvOptions& options) {
  const Tensor weight = call.tensor(1);
  const int spatial = weight.rank() - 2;
  require_multiples(call, x, spatial, options.stride);
  Tensor y;
  switch (spatial) {
    case 1: y = conv1d(x, weight, options); break;
    case 2: y = conv2d(x, weight, options); break;
    case 3: y = conv3d(x, weight, options); break;
    default: call.fail(fmt::format("a convolution over {} dims; 1 to 3 are supported", spatial));
  }
  return call.has(2) ? y + along_axis(call.tensor(2), 1, y.rank()) : y;
}

/// An operand without the batch dim is one element of a batch.
Results of_batches(const OpCall& call, const auto& convolve) {
  const Tensor x = call.tensor(0);
  const bool has_batch = x.rank() == call.operand(1).rank();
  const Tensor y = convolve(has_batch ? x : x.unsqueeze(0));
  return {has_batch ? y : y.squeeze(0)};
}

ConvOptions conv_options(const OpCall& call, PerDim padding) {
  return {.stride = per_dim_argument(call, "stride", 1),
          .padding = std::move(padding),
          .dilation = per_dim_argument(call, "dilation", 1),
          .groups = call.integer("groups", 1)};
}

Results conv_op(const OpCall& call) {
  const ConvOptions options = conv_options(call, per_dim_argument(call, "padding", 0));
  return of_batches(call, [&](const Tensor& x) { return convolved(call, x, options); });
}

/// The padding "same" has an output for each input; an odd number of zeros has the larger half at the end.
Results conv_with_mode(const OpCall& call) {
  const std::string mode = call.text("padding", "valid");
  if (mode != "valid" && mode != "same")
    call.fail(fmt::format("the argument padding is '{}'", mode), "import_attribute");
  const ConvOptions options = conv_options(call, 0);
  const Shape weight = call.operand(1).shape();
  return of_batches(call, [&](Tensor x) {
    for (int i = 2; mode == "same" && i < weight.rank(); ++i) {
      const auto size = weight[i].value();
      if (!size) call.fail("the weight has unknown sizes", "import_size");
      const Ints& dilation = options.dilation.numbers;
      const std::size_t k = dilation.size() == 1 ? 0 : static_cast<std::size_t>(i) - 2;
      if (k >= dilation.size()) call.fail("the argument dilation has too few numbers", "import_attribute");
      const std::int64_t step = dilation[k];
      const std::int64_t total = step * (*size - 1);
      if (total > 0) x = pad(x, i, total / 2, total - total / 2);
    }
    return convolved(call, x, options);
  });
}

Tensor transposed(const OpCall& call, const Tensor& x) {
  const ConvTransposeOptions options{.stride = per_dim_argument(call, "stride", 1),
                                     .padding = per_dim_argument(call, "padding", 0),
                                     .output_padding = per_dim_argument(call, "output_padding", 0),
                                     .dilation = per_dim_argument(call, "dilation", 1),
                                     .groups = call.integer("groups", 1)};
  const Tensor weight = call.tensor(1);
  Tensor y;
  switch (weight.rank() - 2) {
    case 1: y = conv_transpose1d(x, weight, options); break;
    case 2: y = conv_transpose2d(x, weight, options); break;
    case 3: y = conv_transpose3d(x, weight, options); break;
    default: call.fail(fmt::format("a transposed convolution over {} dims; 1 to 3 are supported", weight.rank() - 2));
  }
  return call.has(2) ? y + along_axis(call.tensor(2), 1, y.rank()) : y;
}

Results conv_transpose_op(const OpCall& call) {
  return of_batches(call, [&](const Tensor& x) { return transposed(call, x); });
}

Results convolution_op(const OpCall& call) {
  if (call.flag("transposed", false)) return conv_transpose_op(call);
  call.ignore({"output_padding"});
  return conv_op(call);
}

}  // namespace

std::span<const OpRecord> aten_convolution_ops() {
  constexpr std::string_view operands = "input weight bias", plain = "stride padding dilation groups",
                             transposing = "stride padding output_padding groups dilation";
  static constexpr OpRecord records[] = {
      aten("conv1d", operands, plain, conv_op),
      aten("conv2d", operands, plain, conv_op),
      aten("conv3d", operands, plain, conv_op),
      aten("conv1d.padding", operands, plain, conv_with_mode),
      aten("conv2d.padding", operands, plain, conv_with_mode),
      aten("conv3d.padding", operands, plain, conv_with_mode),
      aten("convolution", operands, "stride padding dilation transposed output_padding groups", convolution_op),
      aten("conv_transpose1d", operands, transposing, conv_transpose_op),
      aten("conv_transpose2d.input", operands, transposing, conv_transpose_op),
      aten("conv_transpose3d.input", operands, transposing, conv_transpose_op),
  };
  return records;
}

}  // namespace lathe::pt2
