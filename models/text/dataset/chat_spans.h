#pragma once

#include "models/text/chat/chat_template.h"
#include "models/text/dataset/conversation_parts.h"

namespace lathe {

/// Renders a conversation and returns the spans of the assistant's turns, including the tokens that end a turn. If
/// the template has {% generation %} blocks, these are the spans. Otherwise, a turn starts at the end of the earlier
/// conversation, rendered with add_generation_prompt. It ends where the rendered conversation up to and including the
/// turn ends. If those renders are not prefixes of the whole text, the content's position is used instead. Throws the
/// UserErrors of ChatTemplate::render(), [chat_spans] if the text of a turn cannot be found, and [chat_spans_work] if
/// that takes too much work.
jinja::Rendered render_with_spans(const ChatTemplate& chat, const jinja::Value& messages,
                                  const ChatOptions& options = {}, const PartOptions& part_options = {});

}  // namespace lathe
