#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/model/string_map.h"
#include "runtime/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// The tokens of a model.
class TokenTable {
 public:
  TokenTable() = default;
  /// {token: id, ...}. UserError [tokenizer_vocab] for an id that is negative, occurs twice or leaves a large gap.
  explicit TokenTable(const JsonNode& place);

  /// A token more, with the next id. Where the text occurs twice, it is found as the last.
  void push(std::string_view text);

  std::optional<TokenId> find(std::string_view text) const { return by_text_.find(text); }
  bool has(TokenId id) const { return id >= 0 && id < end() && texts_[static_cast<std::size_t>(id)].is_known; }
  std::string_view text(TokenId id) const;
  /// How many tokens there are, and one more than the highest id.
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
