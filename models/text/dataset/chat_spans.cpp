#include "models/text/dataset/chat_spans.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace lathe {

using jinja::Kind;
using jinja::TextPieces;
using jinja::TextSpan;
using jinja::Value;

namespace {

/// Returns a text with another start and another end, with the same surrounding white space.
std::string other_text(const std::string& content) {
  constexpr std::string_view spaces = " \t\r\n";
  const std::size_t first = content.find_first_not_of(spaces), last = content.find_last_not_of(spaces);
  if (first == std::string::npos) return "A";
  return fmt::format("{}...{}", content[first] == 'A' ? 'B' : 'A', content[last] == 'A' ? 'B' : 'A');
}

[[noreturn]] void fail_turn(std::size_t i) {
  throw UserError(fmt::format("message {}: the template does not mark which part of the text is the assistant's", i),
                  "chat_spans", "mark it in the template by {% generation %} and {% endgeneration %}");
}

/// Finds the assistant turns of a conversation.
class Conversation {
 public:
  Conversation(const ChatTemplate& chat, const Value& messages, const ChatOptions& options,
               const PartOptions& part_options)
      : messages_(messages),
        add_prompt_(options.add_generation_prompt),
        parts_(chat, messages, options, part_options),
        text_(parts_.whole().text) {}

  jinja::Rendered with_spans() {
    jinja::Rendered rendered = parts_.whole();
    for (std::size_t i = 0; i < messages_.items().size(); ++i) {
      const Value& message = messages_.items()[i];
      const Value* role = message.is(Kind::dict) ? message.dict().find("role") : nullptr;
      if (!role || !role->is_string() || role->string() != "assistant") continue;
      TextSpan span = turn(i);
      // Exclude the end of the previous turn.
      if (!rendered.assistant.empty()) span.begin = std::max(span.begin, rendered.assistant.back().end);
      span.end = std::max(span.end, span.begin);
      rendered.assistant.push_back(span);
    }
    return rendered;
  }

 private:
  TextSpan turn(std::size_t i) {
    const std::optional<std::size_t> start = length_of_start(parts_.first(i, true));
    const std::optional<TextPieces> shown = parts_.first(i + 1, false);
    const std::optional<std::size_t> end = length_of_start(shown);
    if (start && end && *end >= *start) return {*start, *end};
    const auto content = content_in(text_, i, messages_.items().size(), add_prompt_);
    if (!start && !content) fail_turn(i);
    const std::size_t begin = start ? *start : content->begin;
    if (end && *end >= begin) return {begin, *end};
    if (!content) fail_turn(i);
    return {begin, content->end + closing_length(i, shown, *content)};
  }

  /// Returns the length of `text` if it is a prefix of the whole text; nullopt otherwise.
  std::optional<std::size_t> length_of_start(const std::optional<TextPieces>& text) {
    if (!text || common_start(*text, text_) != text->size()) return std::nullopt;
    return text->size();
  }

  /// Returns the position of message i's content in the text of the first `count` messages, found by changing the
  /// content.
  std::optional<TextSpan> content_in(const TextPieces& shown, std::size_t i, std::size_t count, bool add_prompt) {
    const Value* content = messages_.items()[i].dict().find("content");
    if (!content || !content->is_string()) return std::nullopt;
    const auto other = parts_.with_content(count, add_prompt, i, other_text(content->string()));
    if (!other) return std::nullopt;
    const std::size_t begin = common_start(shown, *other);
    const std::size_t least = std::min(shown.size(), other->size()) - begin;
    return TextSpan{begin, shown.size() - std::min(common_end(shown, *other), least)};
  }

  /// Returns the length of the text after the content that ends the turn: the common prefix with the text after the
  /// content in `shown`, the text up to this turn.
  std::size_t closing_length(std::size_t i, const std::optional<TextPieces>& shown, const TextSpan& content) {
    if (!shown) return 0;
    const bool whole = i + 1 == messages_.items().size();
    const auto in_shown = content_in(*shown, i, i + 1, whole && add_prompt_);
    return in_shown ? common_start(shown->from(in_shown->end), text_.from(content.end)) : 0;
  }

  std::size_t common_start(const TextPieces& a, const TextPieces& b) {
    std::uint64_t compared = 0;
    const std::size_t length = jinja::common_start(a, b, compared);
    parts_.spend(compared / 16);
    return length;
  }
  std::size_t common_end(const TextPieces& a, const TextPieces& b) {
    std::uint64_t compared = 0;
    const std::size_t length = jinja::common_end(a, b, compared);
    parts_.spend(compared / 16);
    return length;
  }

  const Value& messages_;
  bool add_prompt_;
  ConversationParts parts_;
  TextPieces text_;
};

}  // namespace

jinja::Rendered render_with_spans(const ChatTemplate& chat, const Value& messages, const ChatOptions& options,
                                  const PartOptions& part_options) {
  if (!chat.marks_assistant()) return Conversation(chat, messages, options, part_options).with_spans();
  ChatOptions marked = options;
  marked.render.assistant_spans = true;
  return chat.render(messages, marked);
}

}  // namespace lathe
