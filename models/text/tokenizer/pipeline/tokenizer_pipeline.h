#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/added/added_tokens.h"
#include "models/text/tokenizer/decode/decoder.h"
#include "models/text/tokenizer/finish/post_processor.h"
#include "models/text/tokenizer/model/model.h"
#include "models/text/tokenizer/normalize/normalizer.h"
#include "models/text/tokenizer/pipeline/fields.h"
#include "models/text/tokenizer/split/pre_tokenizer.h"
#include "models/text/tokenizer/tokenizer.h"

namespace lathe::text {

/// The stages of a tokenizer in the order in which they process a text.
class Pipeline {
 public:
  explicit Pipeline(const JsonNode& place);

  const AddedTokens& added() const { return added_; }
  const Model& model() const { return *model_; }
  const std::optional<Truncation>& truncation() const { return truncation_; }
  const std::optional<Padding>& padding() const { return padding_; }

  /// Encodes one text or a pair. The caller applies padding.
  Encoding encode(std::span<const std::string_view> texts, const EncodeOptions& options) const;
  std::vector<std::string> words_of(std::string_view text) const;
  std::unique_ptr<DecodeStage> start_decoding(std::unique_ptr<DecodeStage> next) const {
    return decoder_->start(std::move(next));
  }

 private:
  /// Per-thread memory and caches.
  struct Scratch {
    MatchMemory matches;
    WordCache cache;
  };
  /// Lends a Scratch to each concurrent call.
  class ScratchLoan;

  Words split(std::string_view text, Scratch& scratch) const;
  Words normalized(std::string_view text, Scratch& scratch) const;
  Draft draft(std::string_view text, std::int32_t type, bool has_offsets, Scratch& scratch) const;

  std::unique_ptr<const Normalizer> normalizer_;
  AddedTokens added_;
  std::unique_ptr<const PreTokenizer> pre_tokenizer_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<const PostProcessor> post_processor_;
  std::unique_ptr<const Decoder> decoder_;
  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
  std::vector<Edges> edges_;  ///< of the model's tokens, if the post-processor trims

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace lathe::text
