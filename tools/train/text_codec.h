#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/vocabulary.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "runtime/train/run_settings.h"

namespace lathe::tools {

/// How a training's text becomes ids: a character each, or the tokens of a tokenizer.
class TextCodec {
 public:
  explicit TextCodec(text::Vocabulary characters);
  explicit TextCodec(Tokenizer tokenizer);

  /// By --tokenizer: "" for characters, "bpe:SIZE" to learn a byte-level BPE from the text, else a tokenizer.json or
  /// a folder with one. UserErrors [tokenizer_size], those of Tokenizer.
  static TextCodec make(const std::string& option, std::string_view text);
  /// The one of a run that goes on: what kept() gave, as the checkpoint has it, and tokenizer.json in the run's
  /// folder. UserError [train_resume].
  static TextCodec resumed(const Settings& kept, const std::filesystem::path& checkpoint,
                           const std::filesystem::path& run);

  std::int64_t size() const;      ///< ids
  std::string_view unit() const;  ///< "characters" or "tokens"
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// Gives the text of ids as they come: the function takes the next id.
  std::function<std::string(std::int64_t)> stream() const;

  /// All of it, for other processes.
  std::string to_text() const;
  static TextCodec of_text(const std::string& text);

  /// What a checkpoint keeps of it.
  Settings kept() const;
  /// A tokenizer.json of either kind, which transformers opens.
  std::string tokenizer_json() const;

 private:
  std::optional<text::Vocabulary> characters_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace lathe::tools
