#include <fmt/core.h>

#include <cmath>

#include "frontend/ops/loops/loops.h"
#include "frontend/ops/spatial/conv_ops.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/tensor_data.h"

/// Attention without a growing cache: linear attention, causal convolutions, caches of a fixed size, and attention
/// whose scores a graph changes.
namespace lathe::onnx {

namespace {

/// [B, T, heads * d] -> [T, B, heads, d]
Tensor by_step(const OpCall& call, const Tensor& x, std::int64_t heads, std::string_view name) {
  const std::optional<Dim> size = x.rank() == 3 ? x.size(2).divided_by(heads) : std::nullopt;
  if (!size)
    call.fail(fmt::format("{} {} is not [batch, length, {} heads * size]", name, x.shape().to_string(), heads),
              "import_operand");
  return x.reshape({x.size(0), x.size(1), heads, *size}).transpose(0, 1);
}

/// The operands of a linear attention, by step: q [T, B, heads, k], k [T, B, kv, k], v [T, B, kv, v].
struct LinearAttention {
  Tensor q, k, v;
  Tensor decay = {};       ///< [T, B, kv, k or 1]: the logarithm of the factor of the state; empty without
  Tensor beta = {};        ///< [T, B, kv or 1, 1]: the rate of the delta rule; empty without
  std::int64_t group = 1;  ///< query heads for each head of the state
  double scale = 1;
};

/// Reads an operand that some update rules need and the others do not have.
Tensor rule_operand(const OpCall& call, std::size_t i, bool is_needed, std::string_view name, std::string_view rule) {
  if (call.has(i) != is_needed)
    call.fail(fmt::format("{} is {} for the update_rule '{}'", name, is_needed ? "missing" : "given", rule),
              "import_operand");
  return is_needed ? call.tensor(i).to(at_least_f32(call.dtype(i))) : Tensor();
}

std::int64_t heads_of(const OpCall& call, std::string_view attribute) {
  const std::int64_t heads = call.integer(attribute);
  if (heads < 1) call.fail(fmt::format("the attribute {} is {}", attribute, heads), "import_attribute");
  return heads;
}

LinearAttention linear_attention_of(const OpCall& call) {
  call.ignore({"chunk_size"});  // a hint, without an effect on results
  const std::int64_t query_heads = heads_of(call, "q_num_heads"), heads = heads_of(call, "kv_num_heads");
  if (query_heads % heads != 0)
    call.fail(fmt::format("{} query heads are no multiple of {} heads", query_heads, heads), "import_attribute");
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear")
    call.fail(fmt::format("the attribute update_rule is '{}'", rule), "import_attribute",
              "linear, gated, delta and gated_delta are supported");
  const auto wide = [&](std::size_t i) { return call.tensor(i).to(at_least_f32(call.dtype(i))); };
  LinearAttention parts{by_step(call, wide(0), query_heads, "the query"), by_step(call, wide(1), heads, "the key"),
                        by_step(call, wide(2), heads, "the value")};
  parts.group = query_heads / heads;
  if (const Tensor decay = rule_operand(call, 4, decays, "the decay", rule); decays)
    parts.decay = by_step(call, decay, heads, "the decay");
  if (const Tensor beta = rule_operand(call, 5, corrects, "beta", rule); corrects)
    parts.beta = by_step(call, beta, beta.size(-1).is(1) ? 1 : heads, "beta");
  parts.scale = call.real("scale", 0);
  if (parts.scale == 0) {
    const auto size = parts.q.size(3).value();
    if (!size) call.fail("the size of a head is unknown", "import_size", "give the attribute scale");
    parts.scale = 1 / std::sqrt(static_cast<double>(*size));
  }
  return parts;
}

/// For each step, S = exp(decay) S; then S = S + k v', or with the delta rule S = S + k (beta (v - S' k))'. The
/// output is scale * S' q.
Results linear_attention(const OpCall& call) {
  const LinearAttention parts = linear_attention_of(call);
  const Dim batch = parts.k.size(1), heads = parts.k.size(2);
  const DType state_dtype = call.has(3) ? call.dtype(3) : call.dtype(0);
  const Tensor first =
      call.has(3)
          ? call.tensor(3).to(parts.k.dtype())
          : call.graph().zeros({batch, heads, parts.k.size(3).unnamed(), parts.v.size(3).unnamed()}, parts.k.dtype());
  std::vector<Tensor> sequences{parts.q, parts.k, parts.v};
  for (const Tensor& given : {parts.decay, parts.beta})
    if (!given.is_empty()) sequences.push_back(given);
  const bool decays = !parts.decay.is_empty(), corrects = !parts.beta.is_empty();
  const LoopResults loop = scan({first}, sequences, [&](std::span<const Tensor> states, std::span<const Tensor> at) {
    const Tensor &q = at[0], &k = at[1];
    Tensor state = states[0], v = at[2];
    if (decays) state = state * exp(at[3]).unsqueeze(-1);
    if (corrects) v = at[decays ? 4 : 3] * (v - einsum("bhkv,bhk->bhv", {state, k}));
    state = state + k.unsqueeze(-1) * v.unsqueeze(-2);
    const Tensor read = parts.group == 1 ? state : state.repeat_interleave(parts.group, 1);
    return LoopStep{{state}, {einsum("bhkv,bhk->bhv", {read, q}) * parts.scale}};
  });
  const Tensor y = loop.outputs[0].transpose(0, 1);  // [B, T, query heads, v]
  return {y.flatten(2, 3).to(call.dtype(0)), loop.carries[0].to(state_dtype)};
}

/// A depthwise convolution along the last dim that sees previous elements alone: of the state, or zeros.
Results causal_conv(const OpCall& call) {
  const Tensor x = call.tensor(0), weight = call.tensor(1);
  if (x.rank() != 3 || weight.rank() != 3) call.fail("x or the weight has not 3 dims", "import_operand");
  const auto size = weight.size(2).value(), channels = weight.size(0).value();
  if (!size || !channels) call.fail("the weight has unknown sizes", "import_size");
  const Tensor joined = call.has(3) ? concat({call.tensor(3), x}, 2) : pad(x, 2, *size - 1, 0);
  Tensor y = conv1d(joined, weight, {.groups = *channels});
  if (call.has(2)) y = y + along_axis(call.tensor(2), 1, 3);
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = silu(y);
  else if (activation != "none")
    call.fail(fmt::format("the attribute activation is '{}', not none, silu or swish", activation),
              "import_attribute");
  return {y, joined.slice(2, joined.size(2).unnamed() - Dim(*size - 1))};
}

/// Writes `update` into a cache along an axis, from a position for each element of the batch. In a circular cache,
/// positions after the end are those at the front.
Results tensor_scatter(const OpCall& call) {
  const Tensor cache = call.tensor(0), update = call.tensor(1);
  const int axis = call.axis(call.integer("axis", -2), cache.rank());
  if (axis == 0 || update.rank() != cache.rank())
    call.fail("the axis is that of the batch, or the update has another rank", "import_attribute");
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    call.fail(fmt::format("the attribute mode is '{}', not linear or circular", mode), "import_attribute");
  const Graph& graph = call.graph();
  Tensor positions = graph.arange(update.size(axis), i64);
  if (call.has(2)) positions = positions + call.tensor(2).to(i64).unsqueeze(1);
  if (mode == "circular") positions = positions % graph.dim_value(cache.size(axis));
  if (!call.has(2)) return {update_rows(cache, positions, update, axis)};
  // One list of positions for each index of the batch: the axis moves behind it, because other dims share the list.
  Ints order{0, axis};
  for (int i = 1; i < cache.rank(); ++i)
    if (i != axis) order.push_back(i);
  Ints back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return {update_rows(cache.permute(order), positions, update.permute(order), 1).permute(back)};
}

/// softmax(score_mod(q k^T * scale)), through prob_mod, times v. The attributes are graphs of one tensor.
Results flex_attention(const OpCall& call) {
  const Tensor q = call.tensor(0);
  if (q.rank() != 4) call.fail("the query has not 4 dims", "import_operand");
  const auto repeated = [&](std::size_t i) {
    const Tensor x = call.tensor(i);
    const std::optional<Dim> times = q.size(1).divided_by(x.size(1));
    if (!times || !times->value()) call.fail("the query heads are no multiple of the key heads", "import_size");
    return times->is(1) ? x : x.repeat_interleave(*times->value(), 1);
  };
  const Tensor k = repeated(1), v = repeated(2);
  DType precision = q.dtype() == f64 ? f64 : f32;
  if (call.has("softmax_precision"))
    precision = dtype_of(call.integer("softmax_precision"), call.node().location.place());
  const auto size = q.size(3).value();
  if (!size && !call.has("scale"))
    call.fail("the size of a head is unknown", "import_size", "give the attribute scale");
  const double scale = call.has("scale") ? call.real("scale") : 1 / std::sqrt(static_cast<double>(*size));
  const auto changed = [&](std::string_view attribute, const Tensor& x) {
    if (!call.has_body(attribute)) return x;
    const Results results = call.run_body(attribute, {x}, call.graph());
    if (results.size() != 1 || results[0].shape() != x.shape())
      call.fail(fmt::format("{} does not return one tensor of the shape {}", attribute, x.shape().to_string()),
                "import_operand");
    return results[0].in(call.graph());
  };
  const Tensor scores = changed("score_mod", (matmul(q, k.transpose(2, 3)) * scale).to(precision));
  const Tensor weights = changed("prob_mod", softmax(scores, -1));
  return {matmul(weights, v.to(precision)).to(v.dtype())};
}

}  // namespace

std::span<const OpRecord> linear_attention_ops() {
  static constexpr OpRecord records[] = {
      {"LinearAttention", 27, latest, "chunk_size kv_num_heads q_num_heads scale update_rule", linear_attention},
      {"CausalConvWithState", 27, latest, "activation", causal_conv},
      {"TensorScatter", 24, latest, "axis mode", tensor_scatter},
  };
  return records;
}

std::span<const OpRecord> preview_ops() {
  static constexpr OpRecord records[] = {
      {"FlexAttention", 1, 1, "prob_mod scale score_mod softmax_precision", flex_attention},
  };
  return records;
}

}  // namespace lathe::onnx
