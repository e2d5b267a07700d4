// Mixtral (Jiang et al. 2024): Llama with mixtures of experts as feed-forwards.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

nn::ExpertsOptions experts(const Config& config) {
  const nn::ExpertsOptions options{.count = config.integer("num_local_experts"),
                                   .chosen = config.integer("num_experts_per_tok"),
                                   .expert = {.dtype = stored_dtype(config),
                                              .activation = activation(config, "hidden_act"),
                                              .gate = "w1",
                                              .up = "w3",
                                              .down = "w2"}};
  if (options.chosen < 1 || options.chosen > options.count)
    config.reject("num_experts_per_tok", "it is from 1 to num_local_experts");
  return options;
}

CausalLmOptions describe_mixtral(const Config& config) {
  CausalLmOptions options = decoder_options(config, "Mixtral");
  for (TransformerLayerOptions& layer : options.layers) {
    layer.feed_forward = experts(config);
    layer.feed_forward_name = "block_sparse_moe";
  }
  if (config.boolean("output_router_logits", false)) options.router_loss = config.real("router_aux_loss_coef");
  return options;
}

}  // namespace

Family mixtral() {
  return {.model_types = {"mixtral"},
          .keys = KeyTable(
              {base_keys(),
               decoder_keys("1000000.0", "131072"),
               {used("num_key_value_heads", "8"), used("rms_norm_eps", "1e-05"), used("sliding_window"),
                used("num_local_experts", "8"), alias("num_experts", "num_local_experts"),
                used("num_experts_per_tok", "2"), used("output_router_logits", "false"),
                used("router_aux_loss_coef", "0.001"),
                harmless("router_jitter_noise", "inference adds no noise, and fine-tuning runs without it")}}),
          .make = describe_mixtral};
}

}  // namespace lathe::pretrained::families
