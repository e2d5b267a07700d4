#include "models/pretrained/encoders/encoder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/encoders/encoder_options.h"

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

/// x = norm(x + attention(x)), then norm(x + feed_forward(x)) (Vaswani et al. 2017).
class EncoderLayer : public nn::Module {
 public:
  EncoderLayer(const Module& parent, std::string_view name, const EncoderOptions& o)
      : Module(parent, name, "EncoderLayer"),
        attention_(*this, "attention", encoder_attention(o)),
        attention_norm_(*this, o.names.attention_norm, o.attention.hidden, encoder_norm(o)),
        feed_forward_(*this, "", o.attention.hidden, o.d_ff,
                      {.dtype = o.attention.dtype,
                       .activation = o.activation,
                       .up = std::string(o.names.up),
                       .down = std::string(o.names.down)}),
        output_norm_(*this, o.names.output_norm, o.attention.hidden, encoder_norm(o)) {}
  Tensor operator()(const Tensor& x, const nn::AttentionContext& context) const {
    const Tensor y = attention_norm_(x + attention_(x, context));
    return output_norm_(y + feed_forward_(y));
  }

 private:
  nn::SelfAttention attention_;
  nn::LayerNorm attention_norm_;
  nn::FeedForward feed_forward_;
  nn::LayerNorm output_norm_;
};

}  // namespace

struct Encoder::Parts {
  Parts(const Module& model, const EncoderOptions& o);
  /// Returns the positions i64 [B, T], counted as in fairseq: the padding's id + 1 for the first token that is not
  /// padding, one more for each following one, and the padding's id for padding.
  Tensor positions_of(const Tensor& ids) const;
  /// Returns the input of the first layer, [B, T, hidden].
  Tensor embed(const Encoder& model, const EncoderInputs& inputs) const;

  EncoderOptions options;
  nn::Embedding words, positions;
  std::optional<nn::Embedding> types = {};
  nn::LayerNorm norm;
  std::vector<EncoderLayer> layers = {};
  std::optional<nn::Linear> head_dense = {}, pooler = {};
  std::optional<nn::LayerNorm> head_norm = {};
  std::optional<nn::Parameter> head_table = {}, head_bias = {};
};

Encoder::Parts::Parts(const Module& model, const EncoderOptions& o)
    : options(o),
      words(model, below(o.embeddings, "word_embeddings"), o.vocab, o.attention.hidden, table_options(o)),
      positions(model, below(o.embeddings, "position_embeddings"), o.positions, o.attention.hidden, table_options(o)),
      norm(model, below(o.embeddings, "LayerNorm"), o.attention.hidden, encoder_norm(o)) {
  const Dim& hidden = o.attention.hidden;
  const nn::LinearOptions linear{.dtype = o.attention.dtype.value_or(f32)};
  if (o.types)
    types = nn::Embedding(model, below(o.embeddings, "token_type_embeddings"), *o.types, hidden, table_options(o));
  for (int i = 0; i < o.layers; ++i) layers.emplace_back(model, below(o.layer, std::to_string(i)), o);
  if (!o.pooler.empty()) pooler = nn::Linear(model, o.pooler, hidden, hidden, linear);
  if (!o.head) return;
  head_dense = nn::Linear(model, o.head->dense, hidden, hidden, linear);
  head_norm = nn::LayerNorm(model, o.head->norm, hidden, encoder_norm(o));
}

Encoder::Encoder(const EncoderOptions& o) : Module(o.kind) {
  auto parts = std::make_shared<Parts>(*this, o);
  if (o.head) {
    const DType dtype = o.attention.dtype.value_or(f32);
    parts->head_bias = declare(o.head->bias, dtype, {o.vocab}, Init::zeros(), Where::current());
    parts->head_table = o.head->is_tied ? parts->words.table()
                                        : declare(o.head->table, dtype, {o.vocab, o.attention.hidden},
                                                  Init::automatic(), Where::current());
  }
  parts_ = std::move(parts);
}

const nn::Parameter& Encoder::table() const { return parts_->words.table(); }
bool Encoder::has_head() const { return parts_->head_dense.has_value(); }
bool Encoder::has_pooler() const { return parts_->pooler.has_value(); }
std::optional<nn::Parameter> Encoder::tied() const {
  const auto& head = parts_->options.head;
  return head && head->is_tied ? parts_->head_table : std::nullopt;
}
std::string Encoder::output_name() const {
  const auto& head = parts_->options.head;
  return head ? head->table.substr(0, head->table.rfind('.')) : "";
}
const Dim& Encoder::width() const { return parts_->options.attention.hidden; }
std::int64_t Encoder::padding() const { return parts_->options.padding.value_or(0); }

Tensor Encoder::Parts::positions_of(const Tensor& ids) const {
  const Dim T = ids.size(1);
  const Tensor is_token = ids != *options.padding;                              // [B, T]
  const Tensor before = is_token.unsqueeze(1) & ids.graph().causal_mask(T, T);  // [B, T, T]
  return where(is_token, before.to(i64).sum(-1), 0) + *options.padding;
}

Tensor Encoder::Parts::embed(const Encoder& model, const EncoderInputs& inputs) const {
  const Graph g = inputs.ids.graph();
  if (inputs.types && !types) throw_part(Where::current(), model, "segments");
  Tensor sum = words(inputs.ids).to(inputs.dtype);
  if (inputs.types)
    sum = sum + (*types)(*inputs.types).to(inputs.dtype);
  else if (types)
    sum = sum + types->table().in(g).select(0, 0).to(inputs.dtype);
  const Tensor at = inputs.positions  ? *inputs.positions
                    : options.padding ? positions_of(inputs.ids)
                                      : g.arange(inputs.ids.size(1), i64);
  return norm(sum + positions(at).to(inputs.dtype));
}

std::vector<Tensor> Encoder::hidden_states(const EncoderInputs& inputs) const {
  const auto context = nn::AttentionContext::bidirectional(inputs.mask);
  std::vector<Tensor> states{parts_->embed(*this, inputs).named("hidden_0")};
  for (const EncoderLayer& layer : parts_->layers)
    states.push_back(layer(states.back(), context).named(fmt::format("hidden_{}", states.size())));
  return states;
}

Tensor Encoder::head(const Tensor& states, Where at) const {
  if (!has_head()) throw_part(at, *this, "output layer");
  const Parts& parts = *parts_;
  const Tensor x = (*parts.head_norm)(nn::activate(parts.options.head->activation, (*parts.head_dense)(states)));
  return linear(x, parts.head_table->as(x), parts.head_bias->as(x));
}

Tensor Encoder::loss(const EncoderInputs& inputs, const Tensor& labels) const {
  return cross_entropy(logits(inputs), labels, -100);
}

Tensor Encoder::pool(const Tensor& states, Where at) const {
  if (!has_pooler()) throw_part(at, *this, "pooler");
  return tanh((*parts_->pooler)(states.select(1, 0)));
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
  const std::string& embeddings = parts_->options.embeddings;
  return has_head() ? "" : embeddings.substr(0, embeddings.rfind('.') + 1);
}

std::int64_t Encoder::longest() const {
  const EncoderOptions& options = parts_->options;
  return options.positions.value().value_or(0) - (options.padding ? *options.padding + 1 : 0);
}

}  // namespace lathe::pretrained
