#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/tokenizer.h"
#include "models/text/vocabulary.h"
#include "runtime/train/run_settings.h"

namespace lathe {

/// Converts a training text to ids: one per character, or the tokens of a tokenizer.
class TextCodec {
 public:
  explicit TextCodec(text::Vocabulary characters);
  explicit TextCodec(Tokenizer tokenizer);

  /// Creates the codec for TextTrainingOptions::tokenizer: "" for characters, "bpe:SIZE" to learn a byte-level BPE
  /// from the text, else a tokenizer.json or its folder. Throws UserErrors [tokenizer_size], those of Tokenizer.
  static TextCodec make(const std::string& option, std::string_view text);
  /// Returns the codec of a resumed run, from the settings that kept() returned, which the checkpoint stores, and
  /// tokenizer.json in the run's folder. Throws UserError [train_resume].
  static TextCodec resumed(const Settings& kept, const std::filesystem::path& checkpoint,
                           const std::filesystem::path& run);

  std::int64_t size() const;      ///< number of ids
  std::string_view unit() const;  ///< "characters" or "tokens"
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// Returns a function that takes the next id and returns the text decoded so far but not yet returned.
  std::function<std::string(std::int64_t)> stream() const;

  /// Serializes the codec for other processes.
  std::string to_text() const;
  static TextCodec of_text(const std::string& text);

  /// Returns the settings that a checkpoint stores.
  Settings kept() const;
  /// Returns a tokenizer.json for either kind that transformers can load.
  std::string tokenizer_json() const;

 private:
  std::optional<text::Vocabulary> characters_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace lathe
