#pragma once

#include <string_view>
#include <vector>

#include "models/text/tokenizer/normalize/aligned_text.h"

namespace lathe::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Returns `source` in a Unicode normal form. A composed character has the span of its first original character.
AlignedText to_normal_form(AlignedText source, NormalForm form);

}  // namespace lathe::text
