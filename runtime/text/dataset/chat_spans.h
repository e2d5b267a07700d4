#pragma once

#include "runtime/text/chat/chat_template.h"
#include "runtime/text/dataset/conversation_parts.h"

namespace lathe {

/// A conversation as its template writes it, and the parts of the text that the assistant writes, what ends its turns
/// included. Where the template marks them by {% generation %}, these; else a turn begins where the conversation
/// before it, rendered with add_generation_prompt, ends (or at its content, where the template writes the
/// conversation otherwise by then), and ends where the conversation up to it does. UserErrors of
/// ChatTemplate::render(); [chat_spans] where the text of a turn is found in no way; [chat_spans_work] where that
/// takes too much work.
jinja::Rendered render_with_spans(const ChatTemplate& chat, const jinja::Value& messages,
                                  const ChatOptions& options = {}, const PartOptions& part_options = {});

}  // namespace lathe
