#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/pretrained/config/config.h"
#include "models/pretrained/transformer_layer.h"

namespace lathe::pretrained {

/// A model as its configuration describes it. Names are those in the files.
struct CausalLmOptions {
  std::string_view kind;  ///< name in messages: "Llama"
  Dim vocab, hidden;
  DType dtype = f32;
  std::vector<TransformerLayerOptions> layers = {};
  nn::NormOptions norm = {};  ///< of the norm before the output layer, which is of the layers' kind
  std::optional<std::int64_t> context_length = {};
  bool is_tied = false;  ///< the output layer shares the embedding table

  std::vector<nn::RopeOptions> ropes = {};  ///< rotary embeddings, from which the layers select
  Dim rotary_dim = 0;
  std::string positions = {};  ///< a table of `context_length` positions; empty: none

  double embedding_multiplier = 1;
  double logits_divisor = 1;
  double logits_cap = 0;   ///< logits become cap * tanh(logits / cap); 0: off
  double router_loss = 0;  ///< factor of the load-balancing loss of a mixture of experts; 0: none

  std::string embed_name = "model.embed_tokens", layer_name = "model.layers", norm_name = "model.norm",
              head_name = "lm_head";
};

/// The keys of a configuration that differ between families with Llama's names.
struct DecoderKeys {
  std::string_view activation = "hidden_act", norm_eps = "rms_norm_eps";
};

/// Returns the options of a model like Llama (Touvron et al. 2023), which families change: RMS norms before each
/// sublayer, rotary embedding of whole heads, grouped-query heads, a gated feed-forward. Reads the keys of
/// decoder_keys(), and attention_bias, mlp_bias, sliding_window and layer_types if the family's table has them.
CausalLmOptions decoder_options(const Config& config, std::string_view kind, const DecoderKeys& keys = {});

}  // namespace lathe::pretrained
