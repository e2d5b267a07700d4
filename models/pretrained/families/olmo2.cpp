// OLMo 2 (OLMo Team 2024): norms after each sublayer, and norms of q and k over all heads.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

CausalLmOptions describe_olmo2(const Config& config) {
  CausalLmOptions options = decoder_options(config, "Olmo2");
  for (TransformerLayerOptions& layer : options.layers) {
    layer.attention.norm = nn::QueryNorm::all;
    layer.attention.norm_options = layer.norm;
    layer.attention_norm = layer.feed_forward_norm = "";
    layer.attention_output_norm = "post_attention_layernorm";
    layer.feed_forward_output_norm = "post_feedforward_layernorm";
  }
  return options;
}

}  // namespace

Family olmo2() {
  return {
      .model_types = {"olmo2"},
      .keys = KeyTable(
          {base_keys(), decoder_keys("10000.0", "2048"), {used("rms_norm_eps", "1e-05"), used("attention_bias")}}),
      .make = describe_olmo2};
}

}  // namespace lathe::pretrained::families
