#include "models/pretrained/causal_lm.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

constexpr std::int64_t ignored_label = -100;

struct CausalFamily : FamilyRecord {
  std::unique_ptr<CausalLm> (*make)(const Config&);
  TensorNames names = {};
  std::string_view table = "model.embed_tokens.weight", head = "lm_head.weight";
};

const std::vector<CausalFamily>& causal_families() {
  static const std::vector<CausalFamily> all{
      {{"llama", llama_keys}, make_llama, {.ignored = {"*.rotary_emb.inv_freq"}}},
      {{"mistral", mistral_keys}, make_llama, {.ignored = {"*.rotary_emb.inv_freq"}}},
      {{"qwen2", qwen2_keys}, make_llama, {.ignored = {"*.rotary_emb.inv_freq"}}},
      {{"qwen3", qwen3_keys}, make_llama},
      {{"mixtral", mixtral_keys}, make_mixtral},
      {{"phi3", phi3_keys}, make_phi3},
      {{"olmo2", olmo2_keys}, make_olmo2},
      {{"gemma2", gemma2_keys}, make_gemma},
      {{"gemma3_text", gemma3_keys}, make_gemma},
      {{"gpt_neox", gpt_neox_keys},
       make_gpt_neox,
       {.ignored = {"*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq"},
        .others = {{"embed_out.weight", "lm_head.weight"}}},
       "gpt_neox.embed_in.weight",
       "embed_out.weight"},
      {{"gpt2", gpt2_keys},
       make_gpt2,
       {.ignored = {"*.attn.bias", "*.attn.masked_bias"}, .prefix = "transformer."},
       "transformer.wte.weight"},
  };
  return all;
}

/// Returns E * sum over experts of (share of tokens that choose the expert) * (its mean probability), over all layers
/// and the tokens that count, as in transformers. E is the number of experts.
Tensor balance_loss(const std::vector<Tensor>& routers, const TokenInputs& inputs, std::int64_t chosen) {
  const DType dtype = routers.front().dtype() == f64 ? f64 : f32;
  const std::optional<Tensor>& counted = inputs.routed ? inputs.routed : inputs.mask;
  const Tensor weight =
      counted ? (*counted != 0).to(dtype) : inputs.ids.graph().full(inputs.ids.shape(), 1, dtype);  // [B, T]
  const Tensor rows = weight.sum() * static_cast<double>(routers.size());
  Tensor taken, likely;  // [experts]
  for (const Tensor& router : routers) {
    const Tensor which = top_k(router, chosen).indices;  // [B, T, chosen]
    const Tensor counts = one_hot(which, router.size(-1), dtype).sum(-2) * weight.unsqueeze(-1);
    const Tensor chances = router.to(dtype) * weight.unsqueeze(-1);
    taken = taken.is_empty() ? counts.sum(0).sum(0) : taken + counts.sum(0).sum(0);
    likely = likely.is_empty() ? chances.sum(0).sum(0) : likely + chances.sum(0).sum(0);
  }
  const Tensor products = (taken / rows) * (likely / rows);
  return products.sum() * static_cast<double>(*routers.front().size(-1).value());
}

/// Rejects models with another kind of output layer. transformers and its forks choose the architecture names.
void check_architecture(const Config& config) {
  const std::string name = architecture(config);
  if (!name.empty() && !name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel"))
    reject_architecture(config, "causal language models, such as LlamaForCausalLM and GPT2LMHeadModel");
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
  if (config.boolean("tie_word_embeddings", false)) return;
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
  const std::vector<nn::RopeOptions> all = ropes();
  return std::any_of(all.begin(), all.end(), nn::depends_on_length);
}

bool CausalLm::has_same_rotation(std::int64_t a, std::int64_t b) const {
  const std::vector<nn::RopeOptions> all = ropes();
  return std::all_of(all.begin(), all.end(),
                     [&](const nn::RopeOptions& rope) { return nn::has_same_frequencies(rope, a, b); });
}

/// Returns the positions: [T] or [B, T].
Tensor CausalLm::positions_of(const TokenInputs& inputs) {
  const Dim T = inputs.ids.size(1);
  if (inputs.cache && (inputs.mask || inputs.positions || inputs.segments))
    throw UserError("a call with a cache takes the positions that the cache says, no mask and no segments",
                    "cache_inputs", "set KeyValueCache::positions where sequences have lengths of their own");
  if (inputs.cache) return inputs.cache->positions_of(inputs.ids.graph(), T);
  return inputs.positions ? *inputs.positions : inputs.ids.graph().arange(T, i64);
}

/// Returns the text lengths as nn::rope_tables() takes them: [], [B], or [B, T] if rows have segments; nothing if no
/// rotation depends on them.
std::optional<Tensor> CausalLm::lengths_of(const TokenInputs& inputs, const Tensor& positions) const {
  if (!depends_on_length()) return std::nullopt;
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

std::vector<Tensor> CausalLm::hidden_states(const TokenInputs& inputs, std::vector<Tensor>* routers) const {
  const Dim T = inputs.ids.size(1);
  const Tensor positions = positions_of(inputs);
  const std::optional<Tensor> lengths = lengths_of(inputs, positions);
  Call call{.context = inputs.cache ? nn::AttentionContext(T, *inputs.cache)
                                    : nn::AttentionContext(T, inputs.mask, inputs.segments),
            .tables = {},
            .dispatch = inputs.dispatch,
            .routers = routers};
  for (const nn::RopeOptions& rope : ropes())
    call.tables.push_back(nn::rope_tables(positions, rotary_dim(), rope, inputs.dtype, lengths));
  std::vector<Tensor> states{embed(inputs, positions).named("hidden_0")};
  for (int i = 0; i < layers(); ++i)
    states.push_back(layer(i, states.back(), call).named(fmt::format("hidden_{}", i + 1)));
  states.back() = final_norm(states.back());
  return states;
}

Tensor CausalLm::loss(const TokenInputs& inputs, const Tensor& labels) const {
  // The label of each token is the next token, and none for the last one. The labels are shifted instead of the
  // logits, because logits are large, and shifting them would also need communication when a sequence is sharded.
  const Tensor none = labels.graph().full({labels.size(0), 1}, ignored_label, i64);
  const Tensor next = concat({labels.slice(1, 1, inputs.ids.size(1)), none}, 1);  // [B, T]
  const RouterLoss routing = router_loss();
  if (routing.factor == 0) return cross_entropy(logits(inputs), next, ignored_label);
  std::vector<Tensor> routers;
  const Tensor own = cross_entropy(head(hidden_states(inputs, &routers).back()), next, ignored_label);
  return own + (balance_loss(routers, inputs, routing.chosen) * routing.factor).to(own.dtype());
}

Tensor CausalLm::loss(const TokenInputs& inputs, const Tensor& labels, const Tensor& weight) const {
  const Tensor mean = loss(inputs, labels);
  const Tensor count = (labels.slice(1, 1, inputs.ids.size(1)) != ignored_label).to(i64).sum().to(mean.dtype());
  return mean * (count * weight.to(mean.dtype()));
}

MadeCausalLm make_causal_lm(ModelFiles& files, const TensorFolder& tensors) {
  const CausalFamily& family = family_of(files.config, causal_families(), ModelKind::causal);
  Config config = model_config(files.config, family.keys());
  check_architecture(config);
  check_counts(config, tensors.names().size());
  TensorNames names = family.names;
  const std::string table(family.table), head(family.head);
  if (config.boolean("tie_word_embeddings", false)) {
    if (differ(tensors, table, head, names)) {
      set_config(files, "tie_word_embeddings", "false");
      config = config.with("tie_word_embeddings", "false");
    } else {
      // Files may store the shared table under either name.
      names.others.emplace_back(table, head);
      names.ignored.insert(names.ignored.end(), {"lm_head.weight", "embed_out.weight"});
    }
  }
  return {family.make(config), names};
}

std::vector<FamilyRecord> causal_records() { return records_of(causal_families()); }

}  // namespace lathe::pretrained
