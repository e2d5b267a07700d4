// Granite 3 (Granite Team 2024): Llama with four multipliers.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

CausalLmOptions describe_granite(const Config& config) {
  CausalLmOptions options = decoder_options(config, "Granite");
  options.embedding_multiplier = config.real("embedding_multiplier");
  options.logits_divisor = config.real("logits_scaling");
  for (TransformerLayerOptions& layer : options.layers) {
    layer.attention.attention.scale = config.real("attention_multiplier");
    layer.residual_multiplier = config.real("residual_multiplier");
  }
  return options;
}

}  // namespace

Family granite() {
  return {.model_types = {"granite"},
          .keys = KeyTable({base_keys(),
                            decoder_keys("10000.0", "2048"),
                            {used("attention_bias"), used("mlp_bias"), used("embedding_multiplier", "1.0"),
                             used("attention_multiplier", "1.0"), used("residual_multiplier", "1.0"),
                             used("logits_scaling", "1.0")}}),
          .make = describe_granite};
}

}  // namespace lathe::pretrained::families
