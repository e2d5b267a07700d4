#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/feed_forward.h"
#include "models/pretrained/config/config.h"

namespace lathe::pretrained {

/// Tensor names of the parts of a layer, which are the only difference between layers of the families.
struct EncoderLayerNames {
  std::string_view q, k, v, o;  ///< within "attention"
  std::string_view attention_norm, up, down, output_norm;
};

/// The differences between families. Names are those in the files.
struct EncoderOptions {
  std::string_view kind;
  Dim vocab, positions, d_ff;
  std::optional<Dim> types = {};  ///< number of segments; none: the model has no segments
  std::optional<std::int64_t> padding =
      {};  ///< if set, positions skip this token and start at its id + 1; otherwise they start at 0
  int layers = 12;
  nn::Activation activation = nn::Activation::gelu;
  double norm_eps = 1e-12;

  std::string embeddings, layer;       ///< prefixes of the tables, and of a layer's number
  nn::SelfAttentionOptions attention;  ///< without its names
  EncoderLayerNames names;

  /// The output layer of a masked language model: table(norm(activation(dense(x)))) + bias.
  struct Head {
    std::string dense, norm, table, bias;
    nn::Activation activation = nn::Activation::gelu;
    bool is_tied = true;  ///< shares the embedding table
  };
  std::optional<Head> head = {};
  std::string head_tensors =
      {};                   ///< the output layer's tensors, which a model without it ignores: "cls.predictions.*"
  std::string pooler = {};  ///< the layer applied to the first token's state; empty: none
};

/// Returns `head` if "architectures" names a model in `with_head`; nothing if it names a model in `without`, or if
/// the file lacks the key. Throws UserError [config_value] for any other model.
std::optional<EncoderOptions::Head> head_if(const Config& config, const std::vector<std::string>& with_head,
                                            const std::vector<std::string>& without,
                                            const EncoderOptions::Head& head);

}  // namespace lathe::pretrained
