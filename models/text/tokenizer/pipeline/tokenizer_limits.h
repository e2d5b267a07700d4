#pragma once

#include "models/text/tokenizer/encoding.h"
#include "models/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// Read "truncation" and "padding" of tokenizer.json. They throw UserError [tokenizer_field].
Truncation read_truncation(const JsonNode& place);
Padding read_padding(const JsonNode& place);

}  // namespace lathe::text
