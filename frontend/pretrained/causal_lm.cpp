#include "frontend/pretrained/causal_lm.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "frontend/pretrained/options.h"

namespace lathe::pretrained {

namespace {

constexpr std::int64_t ignored_label = -100;

struct CausalFamily {
  std::string_view model_type;
  std::unique_ptr<CausalLm> (*make)(const Config&);
  TensorNames names = {};
};

const std::vector<CausalFamily>& causal_families() {
  static const std::vector<CausalFamily> all{
      {"llama", make_llama, {.ignored = {"*.rotary_emb.inv_freq"}}},
      {"mistral", make_llama, {.ignored = {"*.rotary_emb.inv_freq"}}},
      {"qwen2", make_llama, {.ignored = {"*.rotary_emb.inv_freq"}}},
      {"qwen3", make_llama},
      {"mixtral", make_mixtral},
      {"phi3", make_phi3},
      {"olmo2", make_olmo2},
      {"gemma2", make_gemma},
      {"gemma3_text", make_gemma},
      {"gpt_neox",
       make_gpt_neox,
       {.ignored = {"*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq"}}},
      {"gpt2", make_gpt2, {.ignored = {"*.attn.bias", "*.attn.masked_bias"}, .prefix = "transformer."}},
  };
  return all;
}

bool tie_by_default(const Config& config) {
  const std::string family = config.text("model_type");
  return family == "gpt2" || family.starts_with("gemma");
}

std::optional<std::int64_t> context_length(const Config& config) {
  for (const char* key : {"n_positions", "max_position_embeddings"})
    if (config.has(key)) return config.integer(key);
  return std::nullopt;
}

}  // namespace

CausalLm::CausalLm(const Config& config, const Names& names, std::string_view kind)
    : Module(kind),
      context_length_(lathe::pretrained::context_length(config)),
      embed_(*this, names.embed, size(config, "vocab_size", "vocab"),
             size(config, config.has("hidden_size") ? "hidden_size" : "n_embd", "hidden"),
             {.dtype = stored_dtype(config), .flat = false}) {
  if (config.boolean("tie_word_embeddings", tie_by_default(config))) return;
  head_.emplace(*this, names.head, embed_.table().shape()[1], embed_.table().shape()[0],
                nn::LinearOptions{.dtype = stored_dtype(config), .bias = false});
}

Tensor CausalLm::embed(const TokenInputs& inputs, const Tensor&) const {
  return embed_(inputs.ids).to(inputs.dtype);  // [B, T, hidden]
}

Tensor CausalLm::head(const Tensor& x) const {
  return head_ ? (*head_)(x) : nn::project(x, embed_.table());  // [B, T, vocab]
}

bool CausalLm::depends_on_length() const {
  using Scaling = nn::RopeOptions::Scaling;
  const std::vector<nn::RopeOptions> all = ropes();
  return std::any_of(all.begin(), all.end(), [](const nn::RopeOptions& rope) {
    return rope.scaling == Scaling::dynamic || rope.scaling == Scaling::longrope;
  });
}

/// [T] or [B, T]
Tensor CausalLm::positions_of(const TokenInputs& inputs) {
  const Dim T = inputs.ids.size(1);
  if (inputs.cache && (inputs.mask || inputs.positions || inputs.segments))
    throw UserError("a call with a cache takes the positions that the cache says, no mask and no segments",
                    "cache_inputs", "set KeyValueCache::positions where sequences have lengths of their own");
  if (inputs.cache) return inputs.cache->positions_of(inputs.ids.graph(), T);
  return inputs.positions ? *inputs.positions : inputs.ids.graph().arange(T, i64);
}

std::vector<Tensor> CausalLm::hidden_states(const TokenInputs& inputs) const {
  const Dim T = inputs.ids.size(1);
  const Tensor positions = positions_of(inputs);
  Call call{.context = inputs.cache ? nn::AttentionContext(T, *inputs.cache)
                                    : nn::AttentionContext(T, inputs.mask, inputs.segments),
            .tables = {},
            .dispatch = inputs.dispatch};
  for (const nn::RopeOptions& rope : ropes())
    call.tables.push_back(nn::rope_tables(positions, rotary_dim(), rope, inputs.dtype));
  std::vector<Tensor> states{embed(inputs, positions).named("hidden_0")};
  for (int i = 0; i < layers(); ++i)
    states.push_back(layer(i, states.back(), call).named(fmt::format("hidden_{}", i + 1)));
  states.back() = final_norm(states.back());
  return states;
}

Tensor CausalLm::loss(const TokenInputs& inputs, const Tensor& labels) const {
  // What follows each token; nothing the last one. It is labels that are moved, since logits are large, where a
  // sequence is split among processes too.
  const Tensor none = labels.graph().full({labels.size(0), 1}, static_cast<double>(ignored_label), i64);
  const Tensor next = concat({labels.slice(1, 1, inputs.ids.size(1)), none}, 1);  // [B, T]
  return cross_entropy(logits(inputs), next, ignored_label);
}

Tensor CausalLm::loss(const TokenInputs& inputs, const Tensor& labels, const Tensor& weight) const {
  const Tensor mean = loss(inputs, labels);
  const Tensor count = (labels.slice(1, 1, inputs.ids.size(1)) != ignored_label).to(i64).sum().to(mean.dtype());
  return mean * (count * weight.to(mean.dtype()));
}

MadeCausalLm make_causal_lm(const Config& config) {
  const CausalFamily& family = family_of(config, causal_families());
  return {family.make(config), family.names};
}

}  // namespace lathe::pretrained
