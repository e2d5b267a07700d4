#include "models/pretrained/causal_lm.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/config/rope_options.h"

namespace lathe::pretrained {

namespace {

constexpr std::int64_t ignored_label = -100;

/// Returns E * sum over experts of (share of tokens that choose the expert) * (its mean probability), over all layers
/// and the tokens that count, as in transformers. E is the number of experts.
Tensor balance_loss(const std::vector<nn::Routing>& routings, const TokenInputs& inputs) {
  const DType dtype = at_least_f32(routings.front().logits.dtype());
  const std::optional<Tensor>& counted = inputs.routed ? inputs.routed : inputs.mask;
  const Tensor weight =
      counted ? (*counted != 0).to(dtype) : inputs.ids.graph().full(inputs.ids.shape(), 1, dtype);  // [B, T]
  const Tensor rows = weight.sum() * static_cast<double>(routings.size());
  Tensor taken, likely;  // [experts]
  for (const nn::Routing& routing : routings) {
    const Tensor& router = routing.probabilities;
    const Tensor counts = one_hot(routing.choices, router.size(-1), dtype).sum(-2) * weight.unsqueeze(-1);
    const Tensor chances = router.to(dtype) * weight.unsqueeze(-1);
    taken = taken.is_empty() ? counts.sum(0).sum(0) : taken + counts.sum(0).sum(0);
    likely = likely.is_empty() ? chances.sum(0).sum(0) : likely + chances.sum(0).sum(0);
  }
  const Tensor products = (taken / rows) * (likely / rows);
  return products.sum() * static_cast<double>(taken.size(0).number());
}

}  // namespace

CausalLmOptions decoder_options(const Config& config, std::string_view kind, const DecoderKeys& keys) {
  nn::SelfAttentionOptions attention = attention_options(config);
  attention.bias = attention.o_bias = config.boolean("attention_bias", false);
  const nn::NormOptions norm = norm_options(config, keys.norm_eps);
  CausalLmOptions options{.kind = kind,
                          .vocab = size(config, "vocab_size", "vocab"),
                          .hidden = attention.hidden,
                          .dtype = stored_dtype(config),
                          .norm = norm,
                          .is_tied = config.boolean("tie_word_embeddings", false),
                          .ropes = {rope_options(config)},
                          .rotary_dim = attention.d};
  if (config.has("max_position_embeddings")) options.context_length = config.integer("max_position_embeddings");
  const TransformerLayerOptions layer{
      .attention = attention,
      .d_ff = size(config, "intermediate_size", "d_ff"),
      .feed_forward = nn::GatedFeedForwardOptions{.dtype = attention.dtype,
                                                  .activation = activation(config, keys.activation),
                                                  .bias = config.boolean("mlp_bias", false)},
      .norm = norm,
      .rope = 0};
  options.layers.assign(static_cast<std::size_t>(layers_of(config, "num_hidden_layers")), layer);
  for (std::size_t i = 0; i < options.layers.size(); ++i)
    options.layers[i].attention.attention.window = window_of(config, i);
  return options;
}

struct CausalLm::Parts {
  Parts(const Module& model, const CausalLmOptions& o);
  /// Returns the embeddings [B, T, hidden] of the tokens at positions `at`: [T] or [B, T].
  Tensor embed(const TokenInputs& inputs, const Tensor& at) const;

  CausalLmOptions options;
  nn::Embedding embedding;
  std::optional<nn::Embedding> positions = {};
  std::optional<nn::Linear> head = {};
  TransformerLayer::Norm norm = {};
  std::vector<TransformerLayer> layers = {};
};

CausalLm::Parts::Parts(const Module& model, const CausalLmOptions& o)
    : options(o), embedding(model, o.embed_name, o.vocab, o.hidden, {.dtype = o.dtype, .flat = false}) {
  if (!o.is_tied) head = nn::Linear(model, o.head_name, o.hidden, o.vocab, {.dtype = o.dtype, .bias = false});
  norm = TransformerLayer::norm(model, o.norm_name, o.hidden, o.layers.front().norm_kind, o.norm);
  for (std::size_t i = 0; i < o.layers.size(); ++i)
    layers.emplace_back(model, fmt::format("{}.{}", o.layer_name, i), o.layers[i]);
  if (!o.positions.empty())
    positions = nn::Embedding(model, o.positions, Dim("context", o.context_length.value_or(0)), o.hidden,
                              {.dtype = o.dtype, .flat = false});
}

Tensor CausalLm::Parts::embed(const TokenInputs& inputs, const Tensor& at) const {
  std::optional<Tensor> learned;  // [T, hidden] or [B, T, hidden]
  if (positions) learned = (*positions)(at).to(inputs.dtype);
  Tensor x = embedding(inputs.ids).to(inputs.dtype);  // [B, T, hidden]
  if (learned) x = x + *learned;
  return options.embedding_multiplier == 1 ? x : x * options.embedding_multiplier;
}

CausalLm::CausalLm(const CausalLmOptions& options)
    : Module(options.kind), parts_(std::make_shared<Parts>(*this, options)) {}

double CausalLm::router_loss() const { return parts_->options.router_loss; }
std::optional<std::int64_t> CausalLm::context_length() const { return parts_->options.context_length; }
std::optional<std::int64_t> CausalLm::most_positions() const {
  return parts_->positions ? parts_->options.context_length : std::nullopt;
}
std::int64_t CausalLm::vocabulary_size() const { return table().shape()[0].value().value_or(0); }
const nn::Parameter& CausalLm::table() const { return parts_->embedding.table(); }
std::optional<nn::Parameter> CausalLm::tied() const { return parts_->head ? std::nullopt : std::optional(table()); }
const std::string& CausalLm::output_name() const { return parts_->options.head_name; }
const std::optional<nn::Linear>& CausalLm::output_layer() const { return parts_->head; }

Tensor CausalLm::head(const Tensor& x) const {
  const CausalLmOptions& options = parts_->options;
  Tensor logits = parts_->head ? (*parts_->head)(x) : nn::project(x, table());  // [B, T, vocab]
  if (options.logits_divisor != 1) logits = logits / options.logits_divisor;
  const double cap = options.logits_cap;
  return cap == 0 ? logits : tanh(logits / cap) * cap;
}

bool CausalLm::depends_on_length() const { return std::ranges::any_of(parts_->options.ropes, nn::depends_on_length); }

bool CausalLm::has_same_rotation(std::int64_t a, std::int64_t b) const {
  return std::ranges::all_of(parts_->options.ropes,
                             [&](const nn::RopeOptions& rope) { return nn::has_same_frequencies(rope, a, b); });
}

namespace {

/// Returns the positions: [T] or [B, T].
Tensor positions_of(const TokenInputs& inputs) {
  const Dim T = inputs.ids.size(1);
  if (inputs.cache && (inputs.mask || inputs.positions || inputs.segments))
    throw UserError("a call with a cache takes the positions that the cache says, no mask and no segments",
                    "cache_inputs", "set KeyValueCache::positions where sequences have lengths of their own");
  if (inputs.cache) return inputs.cache->positions_of(inputs.ids.graph(), T);
  return inputs.positions ? *inputs.positions : inputs.ids.graph().arange(T, i64);
}

/// Returns the text lengths as nn::rope_tables() takes them: [], [B], or [B, T] if rows have segments; nothing if no
/// rotation depends on them.
std::optional<Tensor> lengths_of(const CausalLm& model, const TokenInputs& inputs, const Tensor& positions) {
  if (!model.depends_on_length()) return std::nullopt;
  if (inputs.lengths && inputs.segments)
    throw UserError("lengths are given for rows of several segments", "rope_lengths",
                    "leave the lengths out: they are those of the segments");
  if (inputs.lengths) return inputs.lengths;
  if (inputs.cache)
    throw UserError("the rotary embedding depends on the length of a text, which a cache does not hold",
                    "rope_lengths", "give TokenInputs::lengths, i64 [B], with the cache");
  const Tensor& ids = inputs.ids;
  const Graph g = ids.graph();
  if (!inputs.mask && !inputs.segments) return positions.max(-1) + 1;
  std::optional<Tensor> counts;  // bool [B, T], or [B, T, T]: tokens of the row that belong to the text
  if (inputs.mask) counts = *inputs.mask != 0;
  if (inputs.segments) {
    const Tensor same = inputs.segments->unsqueeze(2) == inputs.segments->unsqueeze(1);  // [B, T, T]
    counts = counts ? same & counts->unsqueeze(1) : same;
  }
  if (!inputs.positions) return counts->to(i64).sum(-1);
  const Tensor ends = inputs.segments ? (positions + 1).unsqueeze(1) : positions + 1;  // [B, 1, T] or [B, T]
  return where(*counts, ends, g.constant(0, i64)).max(-1);
}

}  // namespace

std::vector<Tensor> CausalLm::hidden_states(const TokenInputs& inputs, std::vector<nn::Routing>* routings) const {
  const Dim T = inputs.ids.size(1);
  const Tensor positions = positions_of(inputs);
  const std::optional<Tensor> lengths = lengths_of(*this, inputs, positions);
  LayerCall call{.context = inputs.cache ? nn::AttentionContext(T, *inputs.cache)
                                         : nn::AttentionContext(T, inputs.mask, inputs.segments),
                 .tables = {},
                 .dispatch = inputs.dispatch,
                 .routings = routings};
  for (const nn::RopeOptions& rope : parts_->options.ropes)
    call.tables.push_back(nn::rope_tables(positions, parts_->options.rotary_dim, rope, inputs.dtype, lengths));
  std::vector<Tensor> states{parts_->embed(inputs, positions).named("hidden_0")};
  for (const TransformerLayer& layer : parts_->layers)
    states.push_back(layer(states.back(), call).named(fmt::format("hidden_{}", states.size())));
  states.back() = parts_->norm(states.back());
  return states;
}

Tensor CausalLm::loss(const TokenInputs& inputs, const Tensor& labels) const {
  // The label of each token is the next token, and none for the last one. The labels are shifted instead of the
  // logits, because logits are large, and shifting them would also need communication when a sequence is sharded.
  const Tensor none = labels.graph().full({labels.size(0), 1}, ignored_label, i64);
  const Tensor next = concat({labels.slice(1, 1, inputs.ids.size(1)), none}, 1);  // [B, T]
  if (router_loss() == 0) return cross_entropy(logits(inputs), next, ignored_label);
  std::vector<nn::Routing> routings;
  const Tensor own = cross_entropy(head(hidden_states(inputs, &routings).back()), next, ignored_label);
  return own + (balance_loss(routings, inputs) * router_loss()).to(own.dtype());
}

Tensor CausalLm::loss(const TokenInputs& inputs, const Tensor& labels, const Tensor& weight) const {
  const Tensor mean = loss(inputs, labels);
  const Tensor count = (labels.slice(1, 1, inputs.ids.size(1)) != ignored_label).to(i64).sum().to(mean.dtype());
  return mean * (count * weight.to(mean.dtype()));
}

}  // namespace lathe::pretrained
