#include "models/text/dataset/conversation_parts.h"

#include <fmt/core.h>

namespace lathe {

using jinja::PartialRenders;
using jinja::TextPieces;
using jinja::Value;

namespace {

/// Deeper lists do not share items, because then they could exceed Value::max_depth in another way.
constexpr int most_shared_depth = Value::max_depth / 2;

std::unique_ptr<PartialRenders> partial_renders(const ChatTemplate& chat, const Value& messages,
                                                const ChatOptions& options) {
  Value variables = chat.variables(options);
  std::vector<Value> all;
  for (const Value& message : messages.items()) all.push_back(ChatTemplate::normalized(message));
  return std::make_unique<PartialRenders>(chat.parsed(),
                                          PartialRenders::Inputs{.variables = std::move(variables),
                                                                 .list_name = "messages",
                                                                 .list = std::move(all),
                                                                 .flag_name = "add_generation_prompt",
                                                                 .flag = options.add_generation_prompt},
                                          options.render);
}

/// Returns the part with its messages as templates see them.
PartialRenders::Part normalized(PartialRenders::Part part) {
  if (part.replaced) part.replaced->second = ChatTemplate::normalized(part.replaced->second);
  return part;
}

}  // namespace

ConversationParts::ConversationParts(const ChatTemplate& chat, const Value& messages, const ChatOptions& options,
                                     const PartOptions& part_options)
    : chat_(chat), messages_(messages), options_(options), part_options_(part_options) {
  options_.render.work = &work_;
  const bool shares = part_options.reuse && messages.is(jinja::Kind::list) && !messages.items().empty() &&
                      !options.continue_final_message && messages.depth() <= most_shared_depth;
  if (shares)
    partial_ = partial_renders(chat, messages, options);
  else
    whole_ = chat.render(messages, options_);
  spend(0);
}

std::optional<TextPieces> ConversationParts::first(std::size_t count, bool add_prompt) {
  return render({count, add_prompt});
}

std::optional<TextPieces> ConversationParts::with_content(std::size_t count, bool add_prompt, std::size_t at,
                                                          const std::string& content) {
  jinja::DictBuilder changed(messages_.items()[at].dict());
  changed.set("content", content);
  return render({count, add_prompt, std::pair(at, std::move(changed).finish())});
}

std::optional<TextPieces> ConversationParts::render(const Part& part) {
  if (part.count == 0) return std::nullopt;
  std::optional<TextPieces> text;
  try {
    text = partial_ ? partial_->render(normalized(part)) : render_again(part);
  } catch (const jinja::TemplateError&) {
  }
  spend(0);
  return text;
}

TextPieces ConversationParts::render_again(const Part& part) {
  ChatOptions options = options_;
  options.add_generation_prompt = part.flag;
  std::vector<Value> messages(messages_.items().begin(),
                              messages_.items().begin() + static_cast<std::ptrdiff_t>(part.count));
  if (part.replaced) messages[part.replaced->first] = part.replaced->second;
  TextPieces text;
  text.append(chat_.render(Value::list(std::move(messages)), options).text);
  return text;
}

void ConversationParts::spend(std::uint64_t work) {
  work_ += work;
  const std::uint64_t done = work_ + (partial_ ? partial_->work() : 0);
  if (part_options_.work) *part_options_.work = done;
  if (done / part_options_.work_factor <= options_.render.limits.work) return;
  throw UserError(
      fmt::format(
          "the template does too much work to find what the assistant writes in a conversation of {} messages",
          messages_.items().size()),
      "chat_spans_work",
      "mark it in the template by {% generation %} and {% endgeneration %}, or split the conversation");
}

}  // namespace lathe
