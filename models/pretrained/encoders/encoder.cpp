#include "models/pretrained/encoders/encoder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"

namespace lathe::pretrained {

namespace {

nn::NormOptions encoder_norm(const EncoderOptions& options) {
  return {.dtype = options.attention.dtype, .eps = options.norm_eps};
}

nn::SelfAttentionOptions encoder_attention(const EncoderOptions& options) {
  nn::SelfAttentionOptions named = options.attention;
  named.q_name = options.names.q;
  named.k_name = options.names.k;
  named.v_name = options.names.v;
  named.o_name = options.names.o;
  named.bias = named.o_bias = true;
  return named;
}

std::string below(std::string_view parent, std::string_view name) { return fmt::format("{}.{}", parent, name); }

nn::EmbeddingOptions table_options(const EncoderOptions& options) {
  return {.dtype = options.attention.dtype, .flat = false};
}

[[noreturn]] void throw_part(const Where& at, const nn::Module& model, std::string_view what) {
  throw UserError(Location(at), "encoder", fmt::format("this {} has no {}", model.kind(), what), "encoder_part",
                  "its config.json and its tensors say which parts it has");
}

}  // namespace

EncoderLayer::EncoderLayer(const Module& parent, std::string_view name, const EncoderOptions& o)
    : Module(parent, name, "EncoderLayer"),
      attention_(*this, "attention", encoder_attention(o)),
      attention_norm_(*this, o.names.attention_norm, o.attention.hidden, encoder_norm(o)),
      feed_forward_(*this, "", o.attention.hidden, o.d_ff,
                    {.dtype = o.attention.dtype,
                     .activation = o.activation,
                     .up = std::string(o.names.up),
                     .down = std::string(o.names.down)}),
      output_norm_(*this, o.names.output_norm, o.attention.hidden, encoder_norm(o)) {}

Tensor EncoderLayer::operator()(const Tensor& x, const nn::AttentionContext& context) const {
  const Tensor y = attention_norm_(x + attention_(x, context));
  return output_norm_(y + feed_forward_(y));
}

Encoder::Encoder(const EncoderOptions& o)
    : Module(o.kind),
      options_(o),
      words_(*this, below(o.embeddings, "word_embeddings"), o.vocab, o.attention.hidden, table_options(o)),
      positions_(*this, below(o.embeddings, "position_embeddings"), o.positions, o.attention.hidden,
                 table_options(o)),
      norm_(*this, below(o.embeddings, "LayerNorm"), o.attention.hidden, encoder_norm(o)) {
  const Dim& hidden = o.attention.hidden;
  const DType dtype = o.attention.dtype.value_or(f32);
  if (o.types)
    types_.emplace(*this, below(o.embeddings, "token_type_embeddings"), *o.types, hidden, table_options(o));
  for (int i = 0; i < o.layers; ++i) layers_.emplace_back(*this, below(o.layer, std::to_string(i)), o);
  if (!o.pooler.empty()) pooler_.emplace(*this, o.pooler, hidden, hidden, nn::LinearOptions{.dtype = dtype});
  if (!o.head) return;
  head_dense_.emplace(*this, o.head->dense, hidden, hidden, nn::LinearOptions{.dtype = dtype});
  head_norm_.emplace(*this, o.head->norm, hidden, encoder_norm(o));
  head_bias_ = declare(o.head->bias, dtype, {o.vocab}, Init::zeros(), Where::current());
  head_table_ = o.head->is_tied
                    ? words_.table()
                    : declare(o.head->table, dtype, {o.vocab, hidden}, Init::automatic(), Where::current());
}

/// Returns the positions i64 [B, T], counted as in fairseq: the padding's id + 1 for the first token that is not
/// padding, one more for each following one, and the padding's id for padding.
Tensor Encoder::positions_of(const Tensor& ids) const {
  const Dim T = ids.size(1);
  const Tensor is_token = ids != *options_.padding;                             // [B, T]
  const Tensor before = is_token.unsqueeze(1) & ids.graph().causal_mask(T, T);  // [B, T, T]
  return where(is_token, before.to(i64).sum(-1), 0) + *options_.padding;
}

/// [B, T, hidden]
Tensor Encoder::embed(const EncoderInputs& inputs) const {
  const Graph g = inputs.ids.graph();
  if (inputs.types && !types_) throw_part(Where::current(), *this, "segments");
  Tensor sum = words_(inputs.ids).to(inputs.dtype);
  if (inputs.types)
    sum = sum + (*types_)(*inputs.types).to(inputs.dtype);
  else if (types_)
    sum = sum + types_->table().in(g).select(0, 0).to(inputs.dtype);
  const Tensor positions = inputs.positions   ? *inputs.positions
                           : options_.padding ? positions_of(inputs.ids)
                                              : g.arange(inputs.ids.size(1), i64);
  return norm_(sum + positions_(positions).to(inputs.dtype));
}

std::vector<Tensor> Encoder::hidden_states(const EncoderInputs& inputs) const {
  const auto context = nn::AttentionContext::bidirectional(inputs.mask);
  std::vector<Tensor> states{embed(inputs).named("hidden_0")};
  for (const EncoderLayer& layer : layers_)
    states.push_back(layer(states.back(), context).named(fmt::format("hidden_{}", states.size())));
  return states;
}

Tensor Encoder::head(const Tensor& states, Where at) const {
  if (!has_head()) throw_part(at, *this, "output layer");
  const Tensor x = (*head_norm_)(nn::activate(options_.head->activation, (*head_dense_)(states)));
  return linear(x, head_table_->as(x), head_bias_->as(x));
}

Tensor Encoder::loss(const EncoderInputs& inputs, const Tensor& labels) const {
  return cross_entropy(logits(inputs), labels, -100);
}

Tensor Encoder::pool(const Tensor& states, Where at) const {
  if (!has_pooler()) throw_part(at, *this, "pooler");
  return tanh((*pooler_)(states.select(1, 0)));
}

std::optional<EncoderOptions::Head> head_if(const Config& config, const std::vector<std::string>& with_head,
                                            const std::vector<std::string>& without,
                                            const EncoderOptions::Head& head) {
  const std::string name = architecture(config);
  if (std::ranges::find(with_head, name) != with_head.end()) return head;
  if (name.empty() || std::ranges::find(without, name) != without.end()) return std::nullopt;
  reject_architecture(config, fmt::format("{} and {}", fmt::join(without, ", "), fmt::join(with_head, ", ")));
}

std::string Encoder::root_name() const {
  return has_head() ? "" : options_.embeddings.substr(0, options_.embeddings.rfind('.') + 1);
}

std::int64_t Encoder::longest() const {
  return options_.positions.value().value_or(0) - (options_.padding ? *options_.padding + 1 : 0);
}

}  // namespace lathe::pretrained
