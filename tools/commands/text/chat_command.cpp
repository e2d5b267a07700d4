#include <CLI/CLI.hpp>

#include "ir/support/error.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/text/chat/chat_template.h"
#include "models/text/template/values/text_forms.h"
#include "tools/commands/commands.h"
#include "tools/inputs/files.h"

namespace lathe::tools {

namespace {

struct ChatRenderOptions {
  std::filesystem::path folder;
  std::vector<std::string> turns;
  std::string system, messages, tools, variables, name, output = "-";
  bool render = false, no_prompt = false, keep_final = false;
};

/// Returns the JSON value of an option; None if it is empty.
jinja::Value json_file(const std::string& file) {
  return file.empty() ? jinja::Value() : jinja::parse_json(read_text(file), file == "-" ? "<stdin>" : file);
}

/// Turns alternate between the user and the assistant.
std::vector<ChatMessage> messages_of(const ChatRenderOptions& options) {
  std::vector<ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  for (std::size_t i = 0; i < options.turns.size(); ++i)
    messages.push_back({i % 2 == 0 ? "user" : "assistant", options.turns[i]});
  return messages;
}

void render_chat(const ChatRenderOptions& options) {
  if (!options.render)
    throw UserError("lathe chat only prints conversations", "usage",
                    "give --render, or use lathe generate DIR --chat to talk with the model");
  if (!options.messages.empty() && (!options.turns.empty() || !options.system.empty()))
    throw UserError("--messages holds the whole conversation", "usage", "leave out --system and the turns");
  if (options.messages.empty() && options.turns.empty())
    throw UserError("there is no message to render", "usage",
                    "give the turns of the conversation, or --messages FILE");
  const auto templates = ChatTemplates::load(pretrained::find_adapted(options.folder).text_folder());
  const jinja::Value tools = json_file(options.tools);
  const ChatTemplate& chat = templates.get(options.name, !options.tools.empty());
  ChatOptions how;
  how.tools = tools;
  how.continue_final_message = options.keep_final;
  if (!options.variables.empty()) how.variables = jinja::parse_json(options.variables, "--variables");
  // A turn of the user is answered next, so the text ends with the start of the answer.
  how.add_generation_prompt = !options.no_prompt && !options.keep_final;
  if (options.messages.empty() && options.turns.size() % 2 == 0) how.add_generation_prompt = false;
  const jinja::Rendered rendered = options.messages.empty() ? chat.render(messages_of(options), how)
                                                            : chat.render(json_file(options.messages), how);
  write_text(options.output, rendered.text);
}

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<ChatRenderOptions>();
  CLI::App* command = app.add_subcommand("chat", "Print a conversation as a model's chat template renders it");
  command->add_option("DIR", options->folder, "Model or adapter directory with a chat template")->required();
  command->add_option("TURN", options->turns, "Turns of the conversation: of the user, the assistant, the user, ...");
  command->add_flag("--render", options->render, "Print the text that the model would read, without running it");
  command->add_option("--system", options->system, "System message");
  command->add_option(
      "--messages", options->messages,
      "JSON file with the conversation, a list of {\"role\": .., \"content\": ..}; - is standard input");
  command->add_option("--tools", options->tools, "JSON file with a list of tool schemas");
  command->add_option("--variables", options->variables,
                      "JSON object of more variables of the template, such as {\"enable_thinking\": false}");
  command->add_option("--template", options->name,
                      "Name of the template, if the directory has several (default: default)");
  CLI::Option* no_prompt =
      command->add_flag("--no-generation-prompt", options->no_prompt, "Do not end with the start of an answer");
  command->add_flag("--continue-final", options->keep_final, "End within the last message, so that it is continued")
      ->excludes(no_prompt);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->footer(
      "The text ends with the start of an answer unless the last turn is the assistant's.\n"
      "Examples:\n"
      "  lathe chat Qwen3-0.6B --render \"What is a monad?\"\n"
      "  lathe chat Qwen3-0.6B --render --messages conversation.json --tools tools.json");
  command->callback([options] { render_chat(*options); });
}

}  // namespace lathe::tools
