#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/pretrained/pretrained.h"

/// Encoders from Hugging Face files: BERT, RoBERTa, DistilBERT. A family is a function from config.json to
/// EncoderOptions (encoder_options.h).
namespace lathe::pretrained {

struct EncoderOptions;

/// The inputs of one encoder call.
struct EncoderInputs {
  Tensor ids;                            ///< i64 [B, T]
  std::optional<Tensor> mask = {};       ///< i64 [B, T]: 0 for padding; none: no padding
  std::optional<Tensor> types = {};      ///< i64 [B, T], the segment of each token; none: 0
  std::optional<Tensor> positions = {};  ///< i64 [B, T]; none: the family's default
  DType dtype = f32;                     ///< compute dtype, regardless of the dtype of the weights
};

/// Embeddings of tokens, positions and segments, a norm, and layers; an output layer and a pooler if the files have
/// them.
class Encoder : public nn::Module {
 public:
  explicit Encoder(const EncoderOptions& options);

  /// Returns the embeddings and the output of each layer: [B, T, hidden] each. Throws UserError [encoder_part] for
  /// segments if the model has none.
  std::vector<Tensor> hidden_states(const EncoderInputs& inputs) const;

  /// The table of token embeddings, [vocab, hidden].
  const nn::Parameter& table() const;

  bool has_head() const;
  /// Returns the prefix that Hugging Face omits from names, except those of the output layer, if the model has no
  /// output layer: "bert."; empty if it has one.
  std::string root_name() const;
  /// The embedding table, if the output layer shares it.
  std::optional<nn::Parameter> tied() const;
  /// Returns the name of the output layer's table in PEFT: "cls.predictions.decoder"; empty if there is none.
  std::string output_name() const;
  /// Returns the logits of a masked language model for each token: [B, T, vocab]. Throws UserError [encoder_part] if
  /// there is no output layer.
  Tensor logits(const EncoderInputs& inputs) const { return head(hidden_states(inputs).back()); }
  /// Returns the mean loss over labels i64 [B, T] other than -100, each for the token at its own position.
  Tensor loss(const EncoderInputs& inputs, const Tensor& labels) const;
  /// Applies the output layer to states of the last layer: [.., hidden] -> [.., vocab].
  Tensor head(const Tensor& states, Where at = Where::current()) const;

  bool has_pooler() const;
  /// Applies a layer and tanh to the first token's state: states of the last layer [B, T, hidden] -> [B, hidden].
  /// Throws UserError [encoder_part] if there is no such layer.
  Tensor pool(const Tensor& states, Where at = Where::current()) const;

  const Dim& width() const;
  /// Maximum number of tokens of a text.
  std::int64_t longest() const;
  /// The padding token, which positions do not count.
  std::int64_t padding() const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace lathe::pretrained
