// Phi-3 (Abdin et al. 2024): one layer for q, k and v, one for gate and up; rotary embedding of a part of each head.
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/config/rope_options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

CausalLmOptions describe_phi3(const Config& config) {
  CausalLmOptions options = decoder_options(config, "Phi3");
  options.rotary_dim = rotary_dim(config);
  using Scaling = nn::RopeOptions::Scaling;
  const Scaling scaling = options.ropes.front().scaling;
  if (scaling != Scaling::none && scaling != Scaling::longrope)
    config.reject(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                  "of scalings, a Phi-3 has longrope alone");
  for (TransformerLayerOptions& layer : options.layers) {
    layer.attention.projections = nn::Projections::stacked;
    std::get<nn::GatedFeedForwardOptions>(layer.feed_forward).stacked = true;
  }
  return options;
}

}  // namespace

Family phi3() {
  return {.model_types = {"phi3"},
          .keys = KeyTable({base_keys(),
                            decoder_keys("10000.0", "4096"),
                            {used("rms_norm_eps", "1e-05"), used("original_max_position_embeddings", "4096"),
                             used("partial_rotary_factor"), used("sliding_window"),
                             harmless("resid_pdrop", dropout_reason), harmless("embd_pdrop", dropout_reason),
                             refused("attention_bias", "[false]", "the library's Phi-3 has no biases")}}),
          .make = describe_phi3};
}

}  // namespace lathe::pretrained::families
