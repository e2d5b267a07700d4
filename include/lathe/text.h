#pragma once

/// Tokenizers and chat templates.
#include "models/text/chat/chat_template.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/tokenizer/tokenizer.h"
