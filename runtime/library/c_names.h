#pragma once

#include <set>
#include <string>
#include <string_view>

#include "ir/support/dtype.h"

/// Names and types of C interfaces.
namespace lathe {

/// Returns whether a text is an identifier of C and C++, and not a keyword of either.
bool is_c_identifier(std::string_view text);

/// Makes identifiers from names of tensors and dims: "h.0.attn.weight" becomes h_0_attn_weight. No identifier is
/// given twice: a number is added to the second.
class CNames {
 public:
  std::string identifier(std::string_view name);

 private:
  std::set<std::string> given_;
};

/// Returns the type of an element: "float"; uint16_t for bf16 and f16; a part of a complex number.
std::string_view c_type(DType dtype);

/// Returns a text as a C comment's content: on one line and without the end of a comment.
std::string c_comment(std::string_view text);

}  // namespace lathe
