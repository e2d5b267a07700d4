#pragma once

#include <string>

#include "runtime/text/tokenizer/encoding.h"

namespace lathe {

/// A token that is found in the text itself, before anything else happens to it.
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool single_word = false;  ///< only where no letter, digit or underscore is next to it
  bool lstrip = false;       ///< takes the spaces before it
  bool rstrip = false;       ///< takes the spaces after it
  bool normalized = false;   ///< found in normalized text
  bool special = false;      ///< left out when decoding skips special tokens
};

}  // namespace lathe
