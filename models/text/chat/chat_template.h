#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/template.h"

namespace lathe {

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant", "tool"
  std::string content;
};

struct ChatOptions {
  jinja::Value tools;      ///< a list of JSON schemas; None for no tools
  jinja::Value documents;  ///< a list of dicts with a title and a text, for templates that use documents; or None
  /// More variables of the template as a dict, such as enable_thinking or date_string. They override special tokens.
  jinja::Value variables;
  bool add_generation_prompt = false;   ///< end with the start of an assistant turn
  bool continue_final_message = false;  ///< end within the last message, so that the model continues it
  jinja::RenderOptions render;
};

/// Renders a conversation to the text that a chat model reads, by the model's own template. The result is that of
/// apply_chat_template in Python's transformers 5. See docs/chat-templates.md.
class ChatTemplate {
 public:
  /// Parses a template. `tokens` is a dict of special tokens by name: bos_token, eos_token, ... Throws ParseError
  /// "NAME:LINE:COLUMN: ...".
  static ChatTemplate parse(std::string_view text, std::string_view name,
                            jinja::Value tokens = jinja::Value::dict({}));

  /// Renders messages, a list of dicts with a role and a content. Throws jinja::TemplateError if the template fails,
  /// and UserError:
  ///   [chat_messages]  no messages, messages that are not dicts, or no final message that can be continued
  ///   [chat_options]   options that exclude each other or have the wrong type
  /// Thread-safe.
  jinja::Rendered render(const jinja::Value& messages, const ChatOptions& options = {}) const;
  jinja::Rendered render(const std::vector<ChatMessage>& messages, const ChatOptions& options = {}) const;

  /// Returns a message as templates see it: without keys whose value is None, and with the reasoning under the names
  /// that templates use. Throws UserError [chat_messages].
  static jinja::Value normalized(const jinja::Value& message);
  /// Returns the variables of the template except `messages` and `add_generation_prompt`. Throws UserError
  /// [chat_options].
  jinja::Value variables(const ChatOptions& options) const;
  const jinja::Template& parsed() const { return template_; }

  /// Returns whether the template marks the assistant's text, so that RenderOptions::assistant_spans finds it.
  bool marks_assistant() const { return template_.marks_generation(); }
  const std::string& text() const { return text_; }

 private:
  ChatTemplate(jinja::Template parsed, std::string_view text, jinja::Value tokens)
      : template_(std::move(parsed)), text_(text), tokens_(std::move(tokens)) {}

  jinja::Template template_;
  std::string text_;
  jinja::Value tokens_;
};

/// The chat templates in a model's directory, by name. They are read from chat_template.jinja ("default") and
/// additional_chat_templates/*.jinja, else from "chat_template" in tokenizer_config.json or chat_template.json.
/// Special tokens are read from tokenizer_config.json and special_tokens_map.json. Throws UserError [chat_template]
/// if there is no template; [json], [file_open], ...; ParseError.
class ChatTemplates {
 public:
  static ChatTemplates load(const std::filesystem::path& directory);
  /// Returns nullopt if there is no template.
  static std::optional<ChatTemplates> find(const std::filesystem::path& directory);

  /// Returns the template of that name. Without a name, returns "tool_use" if `with_tools` and it exists, else
  /// "default", else the only template. Throws UserError [chat_template].
  const ChatTemplate& get(std::string_view name = {}, bool with_tools = false) const;
  std::vector<std::string> names() const;

 private:
  std::vector<std::pair<std::string, ChatTemplate>> templates_;
};

}  // namespace lathe
