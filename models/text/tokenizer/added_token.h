#pragma once

#include <string>

#include "models/text/tokenizer/encoding.h"

namespace lathe {

/// A token that is matched in the text itself, before the model runs.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  ///< match only if no letter, digit or underscore is adjacent
  bool lstrip = false;       ///< include the white space before it
  bool rstrip = false;       ///< include the white space after it
  bool normalized = false;   ///< match in normalized text
  bool special = false;      ///< omitted when decoding skips special tokens
};

}  // namespace lathe
