#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/model/string_map.h"
#include "models/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// The vocabulary of a model.
class TokenTable {
 public:
  TokenTable() = default;
  /// Reads {token: id, ...}. Throws UserError [tokenizer_vocab] for an id that is negative, repeated, or leaves a
  /// large gap.
  explicit TokenTable(const JsonNode& place);

  /// Appends a token with the next id. If a text occurs twice, find() returns the last.
  void push(std::string_view text);

  std::optional<TokenId> find(std::string_view text) const { return by_text_.find(text); }
  bool has(TokenId id) const { return id >= 0 && id < end() && texts_[id].is_known; }
  std::string_view text(TokenId id) const;
  /// Return the number of tokens, and one more than the highest id.
  std::size_t size() const { return size_; }
  TokenId end() const { return static_cast<TokenId>(texts_.size()); }

 private:
  struct Text {
    std::string text;
    bool is_known = false;
  };
  std::vector<Text> texts_;
  StringMap by_text_;
  std::size_t size_ = 0;
};

}  // namespace lathe::text
