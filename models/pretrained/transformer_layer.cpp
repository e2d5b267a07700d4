#include "models/pretrained/transformer_layer.h"

#include "frontend/nn/norm.h"
#include "ir/support/error.h"

namespace lathe::pretrained {

namespace {

Tensor normed(const TransformerLayer::Norm& norm, const Tensor& x) { return norm ? norm(x) : x; }

}  // namespace

TransformerLayer::TransformerLayer(const Module& parent, std::string_view name,
                                   const TransformerLayerOptions& options)
    : Module(parent, name, "TransformerLayer"),
      attention_(*this, options.attention_name, options.attention),
      feed_forward_(feed_forward(*this, options)),
      attention_norm_(norm(options.attention_norm, options)),
      attention_output_norm_(norm(options.attention_output_norm, options)),
      feed_forward_norm_(norm(options.feed_forward_norm, options)),
      feed_forward_output_norm_(norm(options.feed_forward_output_norm, options)),
      rope_(options.rope),
      is_parallel_(options.is_parallel),
      residual_multiplier_(options.residual_multiplier) {
  if (!options.cross) return;
  cross_ = nn::SelfAttention(*this, options.cross->name, options.attention);
  cross_norm_ = norm(options.cross->norm, options);
}

TransformerLayer::Norm TransformerLayer::norm(const Module& parent, const std::string& name, const Dim& d,
                                              NormKind kind, const nn::NormOptions& options) {
  if (name.empty()) return {};
  const auto call = [](const auto& norm) { return [norm](const Tensor& x) { return norm(x); }; };
  if (kind == NormKind::layer) return call(nn::LayerNorm(parent, name, d, options));
  return call(nn::RmsNorm(parent, name, d, options));
}

TransformerLayer::Norm TransformerLayer::norm(const std::string& name, const TransformerLayerOptions& options) const {
  return norm(*this, name, options.attention.hidden, options.norm_kind, options.norm);
}

TransformerLayer::FeedForward TransformerLayer::feed_forward(const Module& parent,
                                                             const TransformerLayerOptions& options) {
  const std::string& name = options.feed_forward_name;
  const Dim& hidden = options.attention.hidden;
  if (const auto* gated = std::get_if<nn::GatedFeedForwardOptions>(&options.feed_forward))
    return nn::GatedFeedForward(parent, name, hidden, options.d_ff, *gated);
  if (const auto* plain = std::get_if<nn::FeedForwardOptions>(&options.feed_forward))
    return nn::FeedForward(parent, name, hidden, options.d_ff, *plain);
  return nn::Experts(parent, name, hidden, options.d_ff, std::get<nn::ExpertsOptions>(options.feed_forward));
}

Tensor TransformerLayer::attend(const Tensor& x, const LayerCall& call) const {
  return rope_ ? attention_(x, call.context, call.tables.at(*rope_)) : attention_(x, call.context);
}

Tensor TransformerLayer::feed(const Tensor& x, const LayerCall& call) const {
  if (const auto* experts = std::get_if<nn::Experts>(&feed_forward_))
    return (*experts)(x, call.dispatch, call.routings);
  if (const auto* plain = std::get_if<nn::FeedForward>(&feed_forward_)) return (*plain)(x);
  return std::get<nn::GatedFeedForward>(feed_forward_)(x);
}

Tensor TransformerLayer::add(const Tensor& x, const Tensor& output) const {
  return x + (residual_multiplier_ == 1 ? output : output * residual_multiplier_);
}

Tensor TransformerLayer::operator()(const Tensor& x, const LayerCall& call) const {
  Tensor y = add(x, normed(attention_output_norm_, attend(normed(attention_norm_, x), call)));
  if (cross_) {
    if (!call.memory) throw InternalError("a layer with cross-attention is called without a memory");
    const Tensor queries = normed(cross_norm_, y);
    y = add(y, std::visit([&](const auto& source) { return cross_->across(queries, source, call.memory->context); },
                          call.memory->source));
  }
  const Tensor fed = feed(normed(feed_forward_norm_, is_parallel_ ? x : y), call);
  return add(y, normed(feed_forward_output_norm_, fed));
}

void TransformerLayer::keep_source(const Tensor& memory, std::optional<DType> dtype) const {
  if (cross_) cross_->keep_source(memory, dtype);
}

}  // namespace lathe::pretrained
