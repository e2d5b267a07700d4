#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/template/template.h"

namespace lathe {

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant", "tool"
  std::string content;
};

struct ChatOptions {
  jinja::Value tools;      ///< a list of JSON schemas; None for no tools
  jinja::Value documents;  ///< a list of dicts with a title and a text, for templates that take documents; or None
  /// More variables of the template, a dict, which come before the special tokens: enable_thinking, date_string, ..
  jinja::Value variables;
  bool add_generation_prompt = false;   ///< end where the assistant begins to speak
  bool continue_final_message = false;  ///< end within the last message, for the model to go on
  jinja::RenderOptions render;
};

/// Makes the text that a chat model reads of a conversation, by the model's own template: what apply_chat_template of
/// transformers 5 (Python) makes, which docs/chat-templates.md tells in full.
class ChatTemplate {
 public:
  /// `tokens` is a dict of special tokens by name: bos_token, eos_token, .. ParseError "NAME:LINE:COLUMN: .."
  static ChatTemplate parse(std::string_view text, std::string_view name,
                            jinja::Value tokens = jinja::Value::dict({}));

  /// `messages` is a list of dicts with a role and a content. Throws jinja::TemplateError where the template fails,
  /// and UserError:
  ///   [chat_messages]  no messages, or none that are dicts; or no final message that could be continued
  ///   [chat_options]   options that exclude each other, or of the wrong type
  /// Thread-safe.
  jinja::Rendered render(const jinja::Value& messages, const ChatOptions& options = {}) const;
  jinja::Rendered render(const std::vector<ChatMessage>& messages, const ChatOptions& options = {}) const;

  /// Returns a message as templates get it: without keys that are None, with the reasoning under all names that
  /// templates look for. Throws UserError [chat_messages].
  static jinja::Value normalized(const jinja::Value& message);
  /// Returns the variables of the template but for `messages` and `add_generation_prompt`. UserError [chat_options].
  jinja::Value variables(const ChatOptions& options) const;
  const jinja::Template& parsed() const { return template_; }

  /// Whether the template says what the assistant writes, so that RenderOptions::assistant_spans finds it.
  bool marks_assistant() const { return template_.marks_generation(); }
  const std::string& text() const { return text_; }

 private:
  ChatTemplate(jinja::Template parsed, std::string_view text, jinja::Value tokens)
      : template_(std::move(parsed)), text_(text), tokens_(std::move(tokens)) {}

  jinja::Template template_;
  std::string text_;
  jinja::Value tokens_;
};

/// The chat templates in a model's directory, by name: chat_template.jinja ("default"),
/// additional_chat_templates/*.jinja, else "chat_template" in tokenizer_config.json or chat_template.json; with the
/// special tokens of tokenizer_config.json and special_tokens_map.json. UserError [chat_template] where there is
/// none; [json], [file_open], ..; ParseError.
class ChatTemplates {
 public:
  static ChatTemplates load(const std::filesystem::path& directory);
  /// The same; nothing where there is none.
  static std::optional<ChatTemplates> find(const std::filesystem::path& directory);

  /// The one of that name; without a name "tool_use" where there are tools and that template, else "default", else
  /// the only one. UserError [chat_template].
  const ChatTemplate& get(std::string_view name = {}, bool with_tools = false) const;
  std::vector<std::string> names() const;

 private:
  std::vector<std::pair<std::string, ChatTemplate>> templates_;
};

}  // namespace lathe
