#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/composites/composite.h"
#include "ir/ops/convolution.h"
#include "ir/support/error.h"

namespace lathe::ir {

namespace {

using Ints = std::vector<std::int64_t>;

Convolution convolution_of(const Attributes& attrs) {
  const auto list = [&](std::string_view name) { return attrs.get<Ints>(name); };
  return {list("stride"), list("low"), list("high"), list("dilation"), attrs.get<std::int64_t>("groups")};
}

/// The size of spatial dim i of a weight. The type rule has checked that it is known.
std::int64_t kernel_size(const Shape& weight, int i) { return weight[i + 2].value().value_or(1); }

void require_lists(const InferContext& ctx, const Convolution& c, std::size_t spatial) {
  const auto check = [&](std::string_view name, const Ints& list, std::int64_t least) {
    ctx.require(list.size() == spatial, "conv_options",
                fmt::format("{} has {} numbers for {} spatial dims", name, list.size(), spatial),
                "give one number for each dim after [batch, channels]");
    for (const std::int64_t number : list)
      ctx.require(number >= least, "conv_options", fmt::format("{} is {}", name, number),
                  fmt::format("give {} or more", least));
  };
  check("stride", c.stride, 1);
  check("low", c.low, 0);
  check("high", c.high, 0);
  check("dilation", c.dilation, 1);
  ctx.require(c.groups >= 1, "conv_options", fmt::format("groups is {}", c.groups), "give 1 or more");
}

void require_channels(const InferContext& ctx, const Convolution& c) {
  const Shape &x = ctx.operand(0).shape, &weight = ctx.operand(1).shape;
  ctx.require_equal(
      x[1], weight[1].unnamed() * Dim(c.groups), "conv_channels",
      fmt::format("{} has {} channels, {} with {} groups takes {}", rules::describe(ctx, 0), x[1].to_string(),
                  describe_role(ctx, 1, "weight"), c.groups, (weight[1].unnamed() * Dim(c.groups)).to_string()),
      "the weight is [out channels, channels / groups, kernel sizes..]");
  ctx.require(weight[0].unnamed().divided_by(c.groups).has_value(), "conv_channels",
              fmt::format("the {} out channels of {} are not known to divide into {} groups", weight[0].to_string(),
                          describe_role(ctx, 1, "weight"), c.groups),
              "give a number of groups that divides the out channels");
  if (ctx.arity() < 3) return;
  const auto message =
      fmt::format("{} does not fit {}", describe_role(ctx, 2, "bias"), describe_role(ctx, 1, "weight"));
  const auto hint = fmt::format("it must be [{}]", weight[0].to_string());
  ctx.require(ctx.operand(2).rank() == 1, "conv_bias", message, hint);
  ctx.require_equal(ctx.operand(2).shape[0], weight[0], "conv_bias", message, hint);
}

/// Returns the number of outputs along spatial dim i.
Dim output_size(const InferContext& ctx, const Convolution& c, int i) {
  const auto at = static_cast<std::size_t>(i);
  const Shape &x = ctx.operand(0).shape, &weight = ctx.operand(1).shape;
  const auto kernel = weight[i + 2].value();
  ctx.require(kernel && *kernel >= 1, "conv_weight",
              fmt::format("dim {} of {} is {}", i + 2, describe_role(ctx, 1, "weight"), weight[i + 2].to_string()),
              "kernel sizes are known numbers of 1 or more");
  const Dim span(c.dilation[at] * (*kernel - 1) + 1), padded = x[i + 2].unnamed() + Dim(c.low[at] + c.high[at]);
  rules::require_at_most(ctx, span, padded, "conv_size",
                         fmt::format("the kernel spans {} elements of dim {} of {}, which has {} with its padding",
                                     span.to_string(), i + 2, rules::describe(ctx, 0), padded.to_string()),
                         "use a smaller kernel, or pad the dim");
  const std::int64_t stride = c.stride[at];
  for (std::int64_t r = 0; r < std::min<std::int64_t>(stride, 4096); ++r)
    if (const auto count = (padded - span - Dim(r)).divided_by(stride)) return *count + Dim(1);
  const auto last = (padded - span).value();
  ctx.require(last.has_value(), "conv_size",
              fmt::format("the number of outputs along dim {} of {} at a stride of {} is not known to be whole",
                          i + 2, rules::describe(ctx, 0), stride),
              "write the size of the dim so that the stride divides it, such as 2 * n");
  return Dim(*last / stride + 1);
}

TensorType infer_conv(const InferContext& ctx) {
  for (int i = 0; i < ctx.arity(); ++i) rules::require_kind(ctx, i, rules::floats);
  const DType dtype = rules::require_same_dtype(ctx);
  const Shape &x = ctx.operand(0).shape, &weight = ctx.operand(1).shape;
  ctx.require(x.rank() >= 3 && x.rank() <= 5, "conv_rank",
              fmt::format("{} has {} dims", rules::describe(ctx, 0), x.rank()),
              "give [batch, channels] and 1 to 3 spatial dims");
  ctx.require(weight.rank() == x.rank(), "conv_rank",
              fmt::format("{} has {} dims and {} {}", rules::describe(ctx, 0), x.rank(),
                          describe_role(ctx, 1, "weight"), weight.rank()),
              "the weight is [out channels, channels / groups, kernel sizes..]");
  const Convolution c = convolution_of(ctx.attrs());
  require_lists(ctx, c, static_cast<std::size_t>(x.rank() - 2));
  require_channels(ctx, c);
  Shape shape{x[0], weight[0]};
  for (int i = 0; i + 2 < x.rank(); ++i) shape.push_back(output_size(ctx, c, i));
  return TensorType::contiguous(dtype, std::move(shape));
}

Value padded(const Value& x, const Convolution& c) {
  Value result = x;
  for (std::size_t i = 0; i < c.low.size(); ++i)
    if (c.low[i] > 0 || c.high[i] > 0) result = pad(result, static_cast<int>(i) + 2, c.low[i], c.high[i]);
  return result;
}

/// Views dim d as [groups, each].
Value grouped(const Value& a, int d, std::int64_t groups, const Dim& each) {
  if (groups == 1) return a;
  std::vector<Dim> dims = a.shape().dims();
  dims[static_cast<std::size_t>(d)] = each;
  dims.insert(dims.begin() + d, Dim(groups));
  return view(a, Shape(std::move(dims)));
}

/// The out channels of a group. The type rule has checked that they divide.
Dim outputs_of_group(const Convolution& c, const Shape& weight) {
  const auto each = weight[0].unnamed().divided_by(c.groups);
  LATHE_ASSERT(each.has_value());
  return *each;
}

/// Views a value in a shape of the same sizes, whose dims have other names.
Value named_as(const Value& a, const Shape& shape) { return a.shape().looks_like(shape) ? a : view(a, shape); }

/// Whether each channel has a kernel of its own. Products of so few numbers are not matmuls.
bool is_depthwise(const Convolution& c, const Shape& weight) {
  constexpr std::int64_t most_kernel_elements = 64;  // one term each
  std::int64_t elements = 1;
  for (int i = 0; i + 2 < weight.rank(); ++i) elements *= kernel_size(weight, i);
  return c.groups > 1 && weight[1].is(1) && weight[0].is(c.groups) && elements <= most_kernel_elements;
}

/// Calls f(elements, position) for each position in the kernel: `elements` [B, C, outputs..] are those that it is
/// multiplied with.
template <class F>
void each_position(const Value& x, const Shape& weight, const Convolution& c, std::span<const Dim> outputs, F&& f) {
  const int spatial = weight.rank() - 2;
  const Value all = padded(x, c);
  Ints position(static_cast<std::size_t>(spatial), 0);
  for (;;) {
    Value part = all;
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t first = position[at] * c.dilation[at];
      const Dim span = (outputs[at].unnamed() - Dim(1)) * Dim(c.stride[at]) + Dim(1);
      part = slice(part, i + 2, first, Dim(first) + span, c.stride[at]);
    }
    f(part, position);
    int i = spatial - 1;
    while (i >= 0 && ++position[static_cast<std::size_t>(i)] == kernel_size(weight, i))
      position[static_cast<std::size_t>(i--)] = 0;
    if (i < 0) return;
  }
}

std::vector<Dim> spatial_dims(const Shape& shape) { return {shape.dims().begin() + 2, shape.dims().end()}; }

Value depthwise(const Value& x, const Value& weight, const Convolution& c, std::span<const Dim> outputs) {
  std::optional<Value> sum;
  each_position(x, weight.shape(), c, outputs, [&](const Value& elements, const Ints& position) {
    Value factors = select(weight, 1, 0);
    for (std::size_t i = 0; i < position.size(); ++i)  // [C, 1..]
      factors = slice(factors, static_cast<int>(i) + 1, position[i], position[i] + 1);
    const Value term = mul(elements, factors);
    sum = sum ? add(*sum, term) : term;
  });
  return *sum;
}

/// The windows of x, [B, (groups,) channels, outputs.., kernel..], and the letters of their dims.
struct Windows {
  Value value;
  std::string labels;
};
constexpr std::string_view output_labels = "xyz", kernel_labels = "uvw";

Windows windows_of(const Value& x, const Shape& weight, const Convolution& c) {
  const int spatial = weight.rank() - 2;
  Value value = padded(x, c);
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<std::size_t>(i);
    value = unfold(value, i + 2, kernel_size(weight, i), c.stride[at], c.dilation[at]);
  }
  const auto count = static_cast<std::size_t>(spatial);
  return {grouped(value, 1, c.groups, weight[1].unnamed()),
          fmt::format("b{}c{}{}", c.groups == 1 ? "" : "g", output_labels.substr(0, count),
                      kernel_labels.substr(0, count))};
}

std::string weight_labels(const Convolution& c) {
  return fmt::format("{}oc{}", c.groups == 1 ? "" : "g", kernel_labels.substr(0, c.stride.size()));
}
std::string result_labels(const Convolution& c) {
  return fmt::format("b{}o{}", c.groups == 1 ? "" : "g", output_labels.substr(0, c.stride.size()));
}

/// Repeats a value along a new first dim, without a copy. Each image then has a product of its own, whose result is
/// contiguous.
Value repeated(const Value& a, const Dim& count) {
  std::vector<Dim> dims = a.shape().dims();
  dims.insert(dims.begin(), count);
  return expand(unsqueeze(a, 0), Shape(std::move(dims)));
}

/// A product of the weights with the windows, which are a view: the kernel's elements of the input are read in place.
Value expand_conv(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  const Convolution c = convolution_of(node.attrs);
  const Value &x = operands[0], &weight = operands[1];
  const std::vector<Dim> outputs = spatial_dims(node.type.shape);
  Value result = x;
  if (is_depthwise(c, weight.shape())) {
    result = depthwise(x, weight, c, outputs);
  } else {
    const Windows windows = windows_of(x, weight.shape(), c);
    result = contract(repeated(grouped(weight, 0, c.groups, outputs_of_group(c, weight.shape())), x.shape()[0]),
                      windows.value, fmt::format("b{},{}->{}", weight_labels(c), windows.labels, result_labels(c)));
  }
  result = named_as(result, node.type.shape);
  if (operands.size() < 3) return result;
  Value bias = operands[2];
  for (std::size_t i = 0; i < outputs.size(); ++i) bias = unsqueeze(bias, -1);
  return named_as(add(result, bias), node.type.shape);
}

/// The gradient with respect to the weight: one sum for each position in the kernel if each channel has its own,
/// otherwise the product of the result's gradient with the windows.
Value weight_gradient(const Value& x, const Value& weight, const Value& grad, const Convolution& c) {
  const int spatial = weight.rank() - 2;
  if (!is_depthwise(c, weight.shape())) {
    const Windows windows = windows_of(x, weight.shape(), c);
    const Value product = contract(grouped(grad, 1, c.groups, outputs_of_group(c, weight.shape())), windows.value,
                                   fmt::format("{},{}->{}", result_labels(c), windows.labels, weight_labels(c)));
    return named_as(product, weight.shape());
  }
  std::vector<std::int64_t> summed{0};
  for (int i = 0; i < spatial; ++i) summed.push_back(i + 2);
  std::vector<Value> sums;  // [C], by position
  each_position(x, weight.shape(), c, spatial_dims(grad.shape()),
                [&](const Value& elements, const Ints&) { sums.push_back(sum(mul(elements, grad), summed)); });
  return reshape(stack(sums, 1), weight.shape());
}

void conv_gradient(const GradientContext& g) {
  const Convolution c = convolution_of(g.node.attrs);
  const Value &x = g.operand(0), &weight = g.operand(1);
  if (g.needs(0)) g.set(0, named_as(transposed_conv(g.grad, weight, c, spatial_dims(x.shape())), x.shape()));
  if (g.needs(1)) g.set(1, weight_gradient(x, weight, g.grad, c));
  if (g.operands.size() < 3 || !g.needs(2)) return;
  std::vector<std::int64_t> summed{0};
  for (int d = 2; d < x.rank(); ++d) summed.push_back(d);
  g.set(2, sum(g.grad, summed));
}

std::vector<Sample> conv_samples() {
  std::vector<Sample> samples;
  const auto sample = [&](const Ints& x, const Ints& weight, const Convolution& c, bool bias = false) {
    samples.push_back({.operands = {{x, f64, -1, 1}, {weight, f64, -1, 1}},
                       .attrs = {{"stride", c.stride},
                                 {"low", c.low},
                                 {"high", c.high},
                                 {"dilation", c.dilation},
                                 {"groups", c.groups}}});
    if (bias) samples.back().operands.push_back({{weight[0]}, f64, -1, 1});
  };
  sample({2, 3, 6}, {4, 3, 3}, {{1}, {1}, {1}, {1}, 1}, true);
  sample({1, 2, 9}, {2, 2, 3}, {{2}, {0}, {1}, {2}, 1});
  sample({2, 2, 5, 4}, {3, 2, 3, 2}, {{1, 1}, {1, 0}, {1, 1}, {1, 1}, 1}, true);
  sample({1, 4, 6, 6}, {4, 2, 3, 3}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 2});
  sample({2, 3, 5}, {3, 1, 2}, {{1}, {1}, {0}, {1}, 3}, true);
  sample({1, 2, 6, 5}, {2, 1, 3, 3}, {{2, 1}, {1, 2}, {1, 2}, {1, 2}, 2});
  sample({1, 2, 4}, {6, 1, 3}, {{1}, {1}, {1}, {1}, 2});
  sample({1, 1, 3, 3, 3}, {2, 1, 2, 2, 2}, {{1, 1, 1}, {0, 1, 0}, {0, 0, 0}, {1, 1, 1}, 1});
  sample({0, 2, 4}, {3, 2, 3}, {{1}, {1}, {1}, {1}, 1}, true);
  sample({1, 2, 4}, {3, 2, 1}, {{1}, {0}, {0}, {1}, 1});
  sample({1, 2, 7}, {3, 2, 2}, {{3}, {3}, {2}, {1}, 1});
  return samples;
}

constexpr AttrSpec conv_attrs[] = {
    {"stride", AttrKind::integers, true, {}, "the distance between outputs, for each spatial dim"},
    {"low", AttrKind::integers, true, {}, "the number of zeros before each spatial dim"},
    {"high", AttrKind::integers, true, {}, "the number of zeros after it"},
    {"dilation", AttrKind::integers, true, {}, "the distance between the elements of a kernel"},
    {"groups", AttrKind::integer, false, std::int64_t{1}, "groups of channels that are convolved separately"},
};
constexpr std::string_view conv_labels[] = {"dtype_kind",    "dtype_match", "conv_rank", "conv_options",
                                            "conv_channels", "conv_weight", "conv_bias", "conv_size"};

}  // namespace

namespace ops {

constinit const Op conv = composite(
    "conv", "x [B, C, n..] convolved with weights [O, C / groups, k..], plus a bias [O]", {2, 3},
    MixedPrecision::low_precision, conv_attrs, conv_labels, infer_conv, expand_conv, conv_gradient, conv_samples);

}  // namespace ops

}  // namespace lathe::ir
