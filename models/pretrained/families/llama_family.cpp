// Llama 2 and 3 (Touvron et al. 2023): norms before each sublayer, rotary embedding, grouped-query heads, a gated
// feed-forward.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

CausalLmOptions describe_llama(const Config& config) { return decoder_options(config, "Llama"); }

}  // namespace

Family llama() {
  return {
      .model_types = {"llama"},
      .keys = KeyTable({base_keys(), decoder_keys("10000.0", "2048"), {used("attention_bias"), used("mlp_bias")}}),
      .make = describe_llama,
      .names = {.ignored = {"*.rotary_emb.inv_freq"}}};
}

}  // namespace lathe::pretrained::families
