#include "frontend/nn/attention/self_attention.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "frontend/nn/attention/attention.h"
#include "frontend/nn/require_option.h"
#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

void check(const AttentionContext::Options& options, bool is_causal, const Where& at) {
  const auto require = [&](bool holds, std::string_view name, const auto& value, std::string_view hint) {
    require_option(at, "attention", "attention_options", holds, name, value, hint);
  };
  require(std::isfinite(options.scale), "the scale", options.scale, "give a finite number, such as d^-0.5");
  require(options.soft_cap >= 0 && std::isfinite(options.soft_cap), "soft_cap", options.soft_cap,
          "give a positive number, or 0 for none");
  require(options.window.value_or(1) >= 1, "the window", options.window.value_or(1),
          "give 1 or more: a query sees itself");
  require(is_causal || !options.window, "the window", options.window.value_or(1),
          "attention in both directions has none");
}

/// Number of query heads per key head.
Dim groups_of(const Dim& h, const Dim& kv, const Where& at) {
  const auto groups = h.divided_by(kv);
  if (!groups)
    throw UserError(Location(at), "attention",
                    fmt::format("{} heads cannot share {} key heads", h.to_string(), kv.to_string()),
                    "attention_heads", "make h a multiple of kv");
  return Dim("groups", *groups);
}

}  // namespace

AttentionContext AttentionContext::bidirectional(const std::optional<Tensor>& mask) {
  AttentionContext context(Dim(1), mask);
  context.is_causal_ = false;
  return context;
}

AttentionContext AttentionContext::with_bias(const Tensor& bias) const {
  AttentionContext context = *this;
  context.bias_ = bias;
  return context;
}

/// bool [T, T] or [B, 1, T, T]: query i sees key j; with a cache, [.., T, rows] from KeyValueCache::visible().
Tensor AttentionContext::allowed(const Graph& g, std::optional<std::int64_t> window) const {
  if (cache_) return cache_->visible(g, length_, window);
  Tensor sees = g.causal_mask(length_, length_);  // [T, T]
  if (window) sees = sees & ~g.causal_mask(length_, length_, -*window);
  if (segments_) sees = sees & (segments_->unsqueeze(1).unsqueeze(3) == segments_->unsqueeze(1).unsqueeze(2));
  if (!mask_) return sees;
  const Tensor words = (*mask_ != 0).unsqueeze(1).unsqueeze(2);                         // [B, 1, 1, T]
  const Tensor itself = g.arange(length_, i64).unsqueeze(1) == g.arange(length_, i64);  // [T, T]
  return sees & (words | itself);
}

/// Returns the softmax of the scores that are not masked: [B, h, T, S], or [B, kv, groups, T, S].
Tensor AttentionContext::weights(const Tensor& scores, std::optional<std::int64_t> window) const {
  if (is_causal_) {
    Tensor sees = allowed(scores.graph(), window);
    if (sees.shape().rank() == 4 && scores.shape().rank() == 5) sees = sees.unsqueeze(1);
    return softmax(scores.masked_fill(~sees, minus_infinity), -1);
  }
  if (!mask_) return softmax(scores, -1);
  const Tensor padding = (*mask_ == 0).unsqueeze(1).unsqueeze(2);  // [B, 1, 1, S]
  return softmax(scores.masked_fill(padding, minus_infinity), -1, true);
}

Tensor AttentionContext::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Options& options,
                                Where at) const {
  check(options, is_causal_, at);
  const Dim groups = groups_of(q.size(1, at), k.size(1, at), at);
  const CallSite line(q, at);
  // Heads that share keys read them in place. Otherwise each step would copy the cache once per query head.
  const bool grouped = cache_ && !groups.is(1) && !bias_;
  const Dim B = q.size(0), h = q.size(1), kv = k.size(1), T = q.size(2), d = q.size(3);
  const auto seen = [&](std::string_view cache, const Tensor& x) {
    const Tensor rows = cache_ ? cache_->append(cache, x, options.window) : x;  // [B, kv, S, d]
    if (grouped) return rows.unsqueeze(2);                                      // [B, kv, 1, S, d]
    return groups.is(1) ? rows : repeat_heads(rows, groups);                    // [B, h, S, d]
  };
  const Tensor keys = seen("key_cache", k), values = seen("value_cache", v);
  const Tensor queries = grouped ? q.reshape({B, kv, groups, T, d}) : q;
  Tensor scores = matmul(queries, keys.transpose(-2, -1)) * options.scale;  // [B, h, T, S], or [B, kv, groups, T, S]
  if (options.soft_cap != 0) scores = tanh(scores / options.soft_cap) * options.soft_cap;
  if (bias_) scores = scores + *bias_;
  const Tensor attended = matmul(weights(scores, options.window), values);
  return grouped ? attended.reshape({B, h, T, values.size(4)}) : attended;
}

namespace {

LinearOptions projection(const SelfAttentionOptions& o, bool bias) { return {.bias = bias, .in_out = o.in_out}; }

/// A layer with `heads` heads, if `wanted`.
std::optional<Linear> projection_if(bool wanted, const Module& parent, std::string_view name, const Dim& heads,
                                    const SelfAttentionOptions& o, const Where& at) {
  if (!wanted) return std::nullopt;
  return Linear(parent, name, o.hidden, heads * o.d, projection(o, o.bias), at);
}

}  // namespace

SelfAttention::SelfAttention(const Module& parent, std::string_view name, const SelfAttentionOptions& options,
                             Where at)
    : Module(parent, name, "SelfAttention", options.dtype),
      options_(options),
      stacked_(projection_if(options.projections != Projections::separate, *this, options.stacked_name,
                             options.h + options.kv * 2, options, at)),
      q_(projection_if(options.projections == Projections::separate, *this, options.q_name, options.h, options, at)),
      k_(projection_if(options.projections == Projections::separate, *this, options.k_name, options.kv, options, at)),
      v_(projection_if(options.projections == Projections::separate, *this, options.v_name, options.kv, options, at)),
      o_(*this, options.o_name, options.h * options.d, options.hidden, projection(options, options.o_bias), at) {
  const Dim &h = options.h, &kv = options.kv, &d = options.d;
  groups_of(h, kv, at);
  if (options.norm == QueryNorm::none) return;
  const bool head = options.norm == QueryNorm::head;
  q_norm_.emplace(*this, "q_norm", head ? d : h * d, options.norm_options, at);
  k_norm_.emplace(*this, "k_norm", head ? d : kv * d, options.norm_options, at);
}

/// [B, T, heads * d] -> [B, heads, T, d]
Tensor SelfAttention::query_heads(const Tensor& x, const Dim& heads, const std::optional<RmsNorm>& norm) const {
  if (options_.norm == QueryNorm::all) return split_heads((*norm)(x), heads, options_.d);
  const Tensor split = split_heads(x, heads, options_.d);
  return norm ? (*norm)(split) : split;
}

SelfAttention::Heads SelfAttention::project(const Tensor& x, const Tensor& source) const {
  const Dim &h = options_.h, &kv = options_.kv, &d = options_.d;
  Tensor q, k, v;  // [B, T, h*d], [B, T, kv*d] twice
  switch (options_.projections) {
    case Projections::separate: q = (*q_)(x), k = (*k_)(source), v = (*v_)(source); break;
    case Projections::stacked: {
      const Tensor all = (*stacked_)(x);
      q = all.slice(-1, 0, h * d);
      k = all.slice(-1, h * d, (h + kv) * d);
      v = all.slice(-1, (h + kv) * d, (h + kv * 2) * d);
      break;
    }
    case Projections::interleaved: {
      const Tensor all = (*stacked_)(x).view({x.size(0), x.size(1), h, d * 3}).transpose(1, 2);  // [B, h, T, 3*d]
      return {all.slice(-1, 0, d), all.slice(-1, d, d * 2), all.slice(-1, d * 2, d * 3)};
    }
  }
  return {query_heads(q, h, q_norm_), query_heads(k, kv, k_norm_), split_heads(v, kv, d)};
}

Tensor SelfAttention::operator()(const Tensor& x, const AttentionContext& context,
                                 const std::optional<RotaryTables>& tables, Where at) const {
  const CallSite line(x, at, path());
  Heads heads = project(x, x);
  if (tables) {
    heads.q = rotate(heads.q, *tables);
    heads.k = rotate(heads.k, *tables);
  }
  return attend(heads, context);
}

Tensor SelfAttention::across(const Tensor& x, const Tensor& source, const AttentionContext& context, Where at) const {
  const CallSite line(x, at, path());
  require_separate(at);
  return attend(project(x, source), context);
}

Tensor SelfAttention::across(const Tensor& x, const SourceCache& source, const AttentionContext& context,
                             Where at) const {
  const CallSite line(x, at, path());
  require_separate(at);
  const auto kept = [&](std::string_view name) {
    const Tensor state =
        x.graph().state(name, cache_dtype(x, source.dtype), {source.sources, options_.kv, source.length, options_.d});
    const Tensor rows = state.to(x.dtype());
    return source.sources == x.size(0) ? rows : rows.expand({x.size(0), options_.kv, source.length, options_.d});
  };
  return attend({query_heads((*q_)(x), options_.h, q_norm_), kept("source_keys"), kept("source_values")}, context);
}

void SelfAttention::keep_source(const Tensor& source, std::optional<DType> dtype, Where at) const {
  const CallSite line(source, at, path());
  require_separate(at);
  const auto keep = [&](std::string_view name, const Tensor& x) {  // [sources, kv, S, d]
    const Graph g = source.graph();
    const DType kept = cache_dtype(x, dtype);
    g.update(g.state(name, kept, {x.size(0), x.size(1), x.size(2), x.size(3)}), x.to(kept).contiguous());
  };
  keep("source_keys", query_heads((*k_)(source), options_.kv, k_norm_));
  keep("source_values", split_heads((*v_)(source), options_.kv, options_.d));
}

void SelfAttention::require_separate(const Where& at) const {
  if (options_.projections != Projections::separate)
    throw UserError(Location(at), "attention", "q, k and v are computed by one layer, which has one input",
                    "attention_options", "give separate projections");
}

Tensor SelfAttention::attend(const Heads& heads, const AttentionContext& context) const {
  const Tensor attended = context.attend(heads.q, heads.k, heads.v, options_.attention);  // [B, h, T, d]
  return o_(merge_heads(attended, options_.h * options_.d));                              // [B, T, hidden]
}

}  // namespace lathe::nn
