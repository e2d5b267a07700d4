#include "models/text/tokenizer/model/model.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"

namespace lathe::text {

namespace {

constexpr std::array<std::string_view, 4> model_kinds{"BPE", "Unigram", "WordPiece", "WordLevel"};

/// Returns the model's type. Old files do not specify it.
std::size_t kind_of(const JsonNode& place) {
  if (!place.is_object() || place.value().contains("type")) return read_kind(place, model_kinds);
  const auto& model = place.value();
  if (model.contains("merges")) return 0;
  if (model.contains("vocab") && model["vocab"].is_array()) return 1;
  return model.contains("max_input_chars_per_word") ? 2 : 3;
}

}  // namespace

TokenId Model::unknown_token(const std::string& text) const {
  const auto found = tokens_.find(text);
  if (!found)
    throw UserError(
        fmt::format("a text has a part without a token, and the unknown token {} is not in the vocabulary",
                    quote(text)),
        "tokenizer_unk");
  return *found;
}

void Model::check_steps(std::size_t steps, std::string_view word) {
  constexpr std::size_t least = std::size_t{1} << 21, per_byte = 128;
  if (steps <= least + per_byte * word.size()) return;
  throw UserError(fmt::format("the tokens of a word of {} bytes, {}, take more than {} steps to find", word.size(),
                              quote(word), least + per_byte * word.size()),
                  "tokenizer_limit", "the vocabulary in 'model' has tokens that are too long for such a word");
}

std::unique_ptr<const Model> read_model(const JsonNode& place) {
  constexpr std::array readers{read_bpe, read_unigram, read_word_piece, read_word_level};
  return readers[kind_of(place)](place);
}

}  // namespace lathe::text
