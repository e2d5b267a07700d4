#include "runtime/text/dataset/chat_spans.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace lathe {

using jinja::Kind;
using jinja::TextSpan;
using jinja::Value;

namespace {

std::size_t common_start(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}
std::size_t common_end(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

/// A conversation, of which turns are sought.
class Conversation {
 public:
  Conversation(const ChatTemplate& chat, const Value& messages, const ChatOptions& options)
      : chat_(chat), messages_(messages), options_(options), whole_(chat.render(messages, options)) {}

  jinja::Rendered with_spans() {
    for (std::size_t i = 0; i < messages_.items().size(); ++i) {
      const Value& message = messages_.items()[i];
      const Value* role = message.is(Kind::dict) ? message.dict().find("role") : nullptr;
      if (role && role->is_string() && role->string() == "assistant") whole_.assistant.push_back(turn(i));
    }
    return std::move(whole_);
  }

 private:
  const std::string& text() const { return whole_.text; }

  TextSpan turn(std::size_t i) const {
    const std::optional<TextSpan> content = content_in(text(), i, messages_.items().size());
    TextSpan span;
    if (const auto start = length_of_start(i, true))
      span.begin = *start;
    else if (content)
      span.begin = content->begin;
    else
      fail(i);
    if (const auto end = length_of_start(i + 1, false); end && *end >= span.begin)
      span.end = *end;
    else if (content)
      span.end = content->end + closing_length(i, *content);
    else
      fail(i);
    // What a turn before ends with is not this one's.
    if (!whole_.assistant.empty()) span.begin = std::max(span.begin, whole_.assistant.back().end);
    span.end = std::max(span.end, span.begin);
    return span;
  }

  [[noreturn]] static void fail(std::size_t i) {
    throw UserError(
        fmt::format("message {}: the template does not tell which part of the text is the assistant's", i),
        "chat_spans", "mark it in the template by {% generation %} and {% endgeneration %}");
  }

  /// The first messages alone, as text; nothing where the template refuses them.
  std::optional<std::string> rendered(std::vector<Value> messages, bool add_prompt) const {
    if (messages.empty()) return std::nullopt;
    ChatOptions options = options_;
    options.add_generation_prompt = add_prompt;
    try {
      return chat_.render(Value::list(std::move(messages)), options).text;
    } catch (const jinja::TemplateError&) {
      return std::nullopt;
    }
  }
  std::vector<Value> first(std::size_t count) const {
    return {messages_.items().begin(), messages_.items().begin() + static_cast<std::ptrdiff_t>(count)};
  }

  /// How long the text of the first messages is, where the whole text starts with it.
  std::optional<std::size_t> length_of_start(std::size_t count, bool add_prompt) const {
    const auto start = rendered(first(count), add_prompt);
    return start && text().starts_with(*start) ? std::optional(start->size()) : std::nullopt;
  }

  /// Where the content of message i stands in the text of the first `count`: what changes with it.
  std::optional<TextSpan> content_in(const std::string& shown, std::size_t i, std::size_t count) const {
    std::vector<Value> messages = first(count);
    const Value* content = messages[i].dict().find("content");
    if (!content || !content->is_string()) return std::nullopt;
    jinja::DictBuilder changed(messages[i].dict());
    changed.set("content", other_text(content->string()));
    messages[i] = std::move(changed).finish();
    const auto other = rendered(std::move(messages), options_.add_generation_prompt && count == whole_count());
    if (!other) return std::nullopt;
    const std::size_t begin = common_start(shown, *other);
    const std::size_t least = std::min(shown.size(), other->size()) - begin;
    return TextSpan{begin, shown.size() - std::min(common_end(shown, *other), least)};
  }

  /// A text that starts and ends otherwise, with or without the spaces around it.
  static std::string other_text(const std::string& content) {
    constexpr std::string_view spaces = " \t\r\n";
    const std::size_t first = content.find_first_not_of(spaces), last = content.find_last_not_of(spaces);
    if (first == std::string::npos) return "A";
    return fmt::format("{}...{}", content[first] == 'A' ? 'B' : 'A', content[last] == 'A' ? 'B' : 'A');
  }

  /// How much of what follows the content is the end of the turn: what the text up to this turn has there.
  std::size_t closing_length(std::size_t i, const TextSpan& content) const {
    const auto partial = rendered(first(i + 1), false);
    const auto in_partial = partial ? content_in(*partial, i, i + 1) : std::nullopt;
    if (!in_partial) return 0;
    return common_start(std::string_view(*partial).substr(in_partial->end),
                        std::string_view(text()).substr(content.end));
  }

  std::size_t whole_count() const { return messages_.items().size(); }

  const ChatTemplate& chat_;
  const Value& messages_;
  ChatOptions options_;
  jinja::Rendered whole_;
};

}  // namespace

jinja::Rendered render_with_spans(const ChatTemplate& chat, const Value& messages, const ChatOptions& options) {
  if (!chat.marks_assistant()) return Conversation(chat, messages, options).with_spans();
  ChatOptions marked = options;
  marked.render.assistant_spans = true;
  return chat.render(messages, marked);
}

}  // namespace lathe
