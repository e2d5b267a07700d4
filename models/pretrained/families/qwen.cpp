// Qwen2 (Yang et al. 2024): Llama with biases of q, k and v, and windows in some layers. Qwen3 (Yang et al. 2025) has
// norms of q and k instead of the biases.
#include <utility>

#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/family.h"

namespace lathe::pretrained::families {

namespace {

/// Sets windows: files without layer_types have max_window_layers full layers first.
void set_windows(CausalLmOptions& options, const Config& config) {
  const bool has_windows = config.boolean("use_sliding_window", false);
  for (std::size_t i = 0; i < options.layers.size(); ++i)
    options.layers[i].attention.attention.window =
        window_of(config, i, !has_windows || std::cmp_less(i, config.integer("max_window_layers")));
}

CausalLmOptions describe_qwen2(const Config& config) {
  CausalLmOptions options = decoder_options(config, "Qwen2");
  for (TransformerLayerOptions& layer : options.layers) layer.attention.bias = true;
  set_windows(options, config);
  return options;
}

CausalLmOptions describe_qwen3(const Config& config) {
  CausalLmOptions options = decoder_options(config, "Qwen3");
  set_windows(options, config);
  for (TransformerLayerOptions& layer : options.layers) {
    layer.attention.norm = nn::QueryNorm::head;
    layer.attention.norm_options = layer.norm;
  }
  return options;
}

KeyTable qwen2_keys() {
  return KeyTable({base_keys(),
                   decoder_keys("10000.0", "32768"),
                   {used("num_key_value_heads", "32"), used("use_sliding_window"), used("sliding_window", "4096"),
                    used("max_window_layers", "28"), used("layer_types")}});
}

}  // namespace

Family qwen2() {
  return {.model_types = {"qwen2"},
          .keys = qwen2_keys(),
          .make = describe_qwen2,
          .names = {.ignored = {"*.rotary_emb.inv_freq"}}};
}

Family qwen3() {
  return {.model_types = {"qwen3"},
          .keys = KeyTable({qwen2_keys().rules(), {used("head_dim", "128"), used("attention_bias")}}),
          .make = describe_qwen3};
}

}  // namespace lathe::pretrained::families
