#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "models/pretrained/encoders/encoder.h"

/// Sentence embeddings from sentence-transformers directories: an encoder, the pooling of its states, and whether the
/// result is normalized to length 1.
namespace lathe::pretrained {

/// How the token states of a sentence are pooled; several results are concatenated in this order.
struct Pooling {
  bool cls = false;            ///< the first token's state
  bool max = false;            ///< element-wise maximum over the tokens
  bool mean = false;           ///< mean of the tokens' states
  bool mean_sqrt = false;      ///< sum of the tokens' states over the root of their count
  bool weighted_mean = false;  ///< mean with weights 1, 2, 3, ...
  bool last = false;           ///< the last token's state
  bool normalize = false;      ///< divides the whole vector by its length
  /// Keeps only this many leading elements, after normalization.
  std::optional<std::int64_t> truncate_dim = {};
};

/// Similarity of two vectors x and y.
enum class Similarity : std::uint8_t {
  cosine,     ///< x y / (|x| |y|); a vector of zeros has similarity 0
  dot,        ///< x y
  euclidean,  ///< -|x - y|
  manhattan,  ///< minus the sum of |x_i - y_i|
};

/// Preprocessing and limits of texts.
struct TextOptions {
  std::int64_t longest = 512;  ///< maximum number of tokens, including special ones
  bool lower_case = false;     ///< converts to lower case first
  /// Prompts to prepend to a text by name, such as "query" and "document".
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt = {};  ///< name of the prompt for texts without one
  Similarity similarity = Similarity::cosine;

  /// Returns the prompt of this name. Throws UserError [embed_prompt].
  const std::string& prompt(std::string_view name) const;
  /// Returns the default prompt, or an empty text.
  std::string default_prompt_text() const { return default_prompt ? prompt(*default_prompt) : ""; }
};

class SentenceEncoder : public nn::Module {
 public:
  SentenceEncoder(std::unique_ptr<Encoder> encoder, const Pooling& pooling, const TextOptions& texts);

  const Encoder& encoder() const { return *encoder_; }
  std::string root_name() const { return encoder_->root_name(); }
  const Pooling& pooling() const { return pooling_; }
  const TextOptions& texts() const { return texts_; }
  /// Elements per vector.
  std::int64_t width() const;

  /// Returns a vector for each sentence: [B, hidden * number of pooling modes], or truncated. Padding (mask 0) is
  /// ignored; a sentence that is all padding yields 0.
  Tensor embed(const EncoderInputs& inputs) const;
  /// The same from states of the last layer, [B, T, hidden].
  Tensor embed(const EncoderInputs& inputs, const Tensor& states) const;

 private:
  std::unique_ptr<Encoder> encoder_;
  Pooling pooling_;
  TextOptions texts_;
};

using PretrainedSentenceEncoder = PretrainedModel<SentenceEncoder>;

/// Loads a sentence-transformers directory. modules.json lists the encoder's directory itself, a pooling module and
/// an optional normalization; without modules.json, mean pooling is used, as in sentence-transformers. The maximum
/// text length is max_seq_length of sentence_bert_config.json, or else the number of the encoder's positions, limited
/// by model_max_length of tokenizer_config.json. Prompts, the similarity and truncate_dim are from
/// config_sentence_transformers.json.
///
///   auto minilm = pretrained::load_pretrained<pretrained::SentenceEncoder>("all-MiniLM-L6-v2");
///   Graph g{"embed"};
///   const Shape shape{Dim("B"), Dim("T")};
///   g.output("vectors", minilm.model->embed({.ids = g.input("input_ids", i64, shape),
///                                            .mask = g.input("attention_mask", i64, shape)}));
///
/// Throws the UserErrors of load_pretrained() for an Encoder, and [config_value] for unknown modules, pooling modes
/// and options.
template <>
PretrainedSentenceEncoder load_pretrained(const std::filesystem::path& folder, const LoadOptions& options);

}  // namespace lathe::pretrained
