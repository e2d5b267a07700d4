#include "models/text/chat/chat_template.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "models/text/template/library/strings.h"

namespace lathe {

using jinja::DictBuilder;
using jinja::Kind;
using jinja::Value;

namespace {

constexpr const char* reasoning_names[] = {"reasoning_content", "thinking", "reasoning"};
/// Marks the end of the final message. If the template trims the message, the trailing space is missing.
constexpr std::string_view end_mark = "CONTINUE_FINAL_MESSAGE_TAG ";

[[noreturn]] void fail_messages(const std::string& message) { throw UserError(message, "chat_messages"); }

Value with_entry(const Value& dict, std::string_view key, Value value) {
  DictBuilder builder(dict.dict());
  builder.set(key, std::move(value));
  return std::move(builder).finish();
}

/// Returns the final message with the mark at its end, and its text without the mark.
std::pair<Value, std::string> marked(const Value& message) {
  const Value* content = message.dict().find("content");
  if (!content) fail_messages("continue_final_message: the final message has no content to continue");
  if (content->is_string())
    return {with_entry(message, "content", content->string() + std::string(end_mark)), content->string()};
  if (!content->is_sequence()) fail_messages("continue_final_message: the content of the final message is no text");
  std::vector<Value> blocks = content->items();
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    const Value* text = block->is(Kind::dict) ? block->dict().find("text") : nullptr;
    if (!text || !text->is_string()) continue;
    const std::string shown = text->string();
    *block = with_entry(*block, "text", shown + std::string(end_mark));
    return {with_entry(message, "content", Value::list(std::move(blocks))), shown};
  }
  fail_messages("continue_final_message: no text to continue was found in the final message");
}

/// Returns the text up to the mark, without white space at its end if the template trims it.
std::string cut_at_mark(const std::string& text, const std::string& final_text) {
  const std::string_view mark = end_mark.substr(0, end_mark.size() - 1);
  const std::size_t at = text.rfind(mark);
  const std::string_view shown = jinja::strip(final_text, std::nullopt, jinja::Sides::both);
  if (at == std::string::npos || text.find(shown) == std::string::npos)
    fail_messages(
        "continue_final_message: the final message does not appear in the text that the template makes; templates "
        "may "
        "drop parts of it");
  const std::string_view before = std::string_view(text).substr(0, at);
  const bool keeps_spaces = std::string_view(text).substr(at).starts_with(end_mark);
  return std::string(keeps_spaces ? before : jinja::strip(before, std::nullopt, jinja::Sides::end));
}

void check_list_of_dicts(const Value& value, std::string_view what) {
  if (value.is_none()) return;
  const bool is_list = value.is(Kind::list);
  if (!is_list ||
      !std::all_of(value.items().begin(), value.items().end(), [](const Value& v) { return v.is(Kind::dict); }))
    throw UserError(fmt::format("{} are a list of dicts", what), "chat_options");
}

void check(const ChatOptions& options) {
  check_list_of_dicts(options.tools, "tools");
  check_list_of_dicts(options.documents, "documents");
  if (!options.variables.is_none() && !options.variables.is(Kind::dict))
    throw UserError("the variables of a chat template are a dict", "chat_options");
  if (!options.continue_final_message) return;
  if (options.add_generation_prompt || options.render.assistant_spans)
    throw UserError("continue_final_message goes together with neither add_generation_prompt nor assistant_spans",
                    "chat_options");
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view text, std::string_view name, Value tokens) {
  return {jinja::Template::parse(text, name), text, std::move(tokens)};
}

Value ChatTemplate::normalized(const Value& message) {
  if (!message.is(Kind::dict))
    fail_messages(fmt::format("a chat message is a dict with a role and a content, not {}", described(message)));
  Value reasoning;
  for (const char* name : reasoning_names)
    if (const Value* given = message.dict().find(name); given && reasoning.is_none()) reasoning = *given;
  DictBuilder builder;
  if (!reasoning.is_none()) builder.set("thinking", reasoning);
  for (const auto& [key, value] : message.dict().items())
    if (!value.is_none() && key.is_string()) builder.set(key.string(), value);
  if (!reasoning.is_none()) builder.set("reasoning_content", reasoning);
  return std::move(builder).finish();
}

Value ChatTemplate::variables(const ChatOptions& options) const {
  check(options);
  DictBuilder variables(tokens_.dict());
  if (options.variables.is(Kind::dict))
    for (const auto& [name, value] : options.variables.dict().items())
      if (name.is_string()) variables.set(name.string(), value);
  variables.set("tools", options.tools);
  variables.set("documents", options.documents);
  return std::move(variables).finish();
}

jinja::Rendered ChatTemplate::render(const Value& messages, const ChatOptions& options) const {
  check(options);
  if (!messages.is(Kind::list) || messages.items().empty())
    fail_messages("a chat template needs a list of messages with at least one in it");
  std::vector<Value> all;
  for (const Value& message : messages.items()) all.push_back(normalized(message));
  std::string final_text;
  if (options.continue_final_message) std::tie(all.back(), final_text) = marked(all.back());

  DictBuilder variables(this->variables(options).dict());
  variables.set("messages", Value::list(std::move(all)));
  variables.set("add_generation_prompt", options.add_generation_prompt);
  jinja::Rendered rendered = template_.render(std::move(variables).finish(), options.render);
  if (options.continue_final_message) rendered.text = cut_at_mark(rendered.text, final_text);
  return rendered;
}

jinja::Rendered ChatTemplate::render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
  std::vector<Value> list;
  for (const auto& [role, content] : messages) list.push_back(Value::dict({{"role", role}, {"content", content}}));
  return render(Value::list(std::move(list)), options);
}

}  // namespace lathe
