#pragma once

#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/normalize/aligned_text.h"

namespace lathe::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// `source` in a normal form of Unicode. A character that stands for several has the span of the first of them.
AlignedText to_normal_form(AlignedText source, NormalForm form);

}  // namespace lathe::text
