#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/pretrained/encoders/encoder.h"

/// Vectors of sentences, as directories of sentence-transformers describe them: an encoder, what is made of its
/// states, and whether the result has length 1.
namespace lathe::pretrained {

/// What is made of the states of a sentence's tokens; several stand one after the other, in this order.
struct Pooling {
  bool cls = false;            ///< the first token's state
  bool max = false;            ///< the largest of each number over the tokens
  bool mean = false;           ///< their mean
  bool mean_sqrt = false;      ///< their sum over the root of their count
  bool weighted_mean = false;  ///< their mean with weights 1, 2, 3, ...
  bool last = false;           ///< the last token's state
  bool normalize = false;      ///< the whole is divided by its length
  /// Only this many first numbers of the vector are kept, after the division.
  std::optional<std::int64_t> truncate_dim = {};
};

/// How close two vectors x and y are.
enum class Similarity : std::uint8_t {
  cosine,     ///< x y / (|x| |y|); a vector of zeros has similarity 0
  dot,        ///< x y
  euclidean,  ///< -|x - y|
  manhattan,  ///< minus the sum of |x_i - y_i|
};

/// What becomes of a text before it is tokenized, and after.
struct TextOptions {
  std::int64_t longest = 512;  ///< tokens that are kept, special ones counted
  bool lower_case = false;     ///< letters become small ones first
  /// Texts to put in front of a text, by their names, such as "query" and "document".
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt = {};  ///< the name of the prompt of texts that are given none
  Similarity similarity = Similarity::cosine;

  /// The prompt of a name. UserError [embed_prompt].
  const std::string& prompt(std::string_view name) const;
  /// The default prompt, or an empty text.
  std::string default_prompt_text() const { return default_prompt ? prompt(*default_prompt) : ""; }
};

class SentenceEncoder : public nn::Module {
 public:
  SentenceEncoder(std::unique_ptr<Encoder> encoder, const Pooling& pooling, const TextOptions& texts);

  const Encoder& encoder() const { return *encoder_; }
  std::string root_name() const { return encoder_->root_name(); }
  const Pooling& pooling() const { return pooling_; }
  const TextOptions& texts() const { return texts_; }
  /// Numbers of a vector.
  std::int64_t width() const;

  /// A vector for each sentence: [B, hidden], as many times as there are ways of pooling. Padding, where the mask is
  /// 0, does not count; a sentence of nothing but padding gives 0.
  Tensor embed(const EncoderInputs& inputs) const;
  /// The same from hidden states of the last layer, [B, T, hidden].
  Tensor embed(const EncoderInputs& inputs, const Tensor& states) const;

 private:
  std::unique_ptr<Encoder> encoder_;
  Pooling pooling_;
  TextOptions texts_;
};

using PretrainedSentenceEncoder = PretrainedModel<SentenceEncoder>;

/// Reads a directory of sentence-transformers: modules.json names the encoder's directory itself, one for pooling and
/// perhaps a normalization; without modules.json tokens have their mean, as sentence-transformers does. Texts are as
/// long as max_seq_length of sentence_bert_config.json says, else as the encoder has positions and model_max_length
/// of tokenizer_config.json allows. Prompts, the similarity and truncate_dim are those of
/// config_sentence_transformers.json.
///
///   auto minilm = pretrained::load_sentence_encoder("all-MiniLM-L6-v2");
///   Graph g{"embed"};
///   const Shape shape{Dim("B"), Dim("T")};
///   g.output("vectors", minilm.model->embed({.ids = g.input("input_ids", i64, shape),
///                                            .mask = g.input("attention_mask", i64, shape)}));
///
/// UserErrors are those of load_encoder(); [config_value] for modules, ways of pooling and options that Lathe does
/// not know.
PretrainedSentenceEncoder load_sentence_encoder(const std::filesystem::path& folder);

}  // namespace lathe::pretrained
