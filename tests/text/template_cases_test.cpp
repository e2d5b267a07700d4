#include <catch2/catch.hpp>

#include "models/text/chat/chat_template.h"
#include "tests/support/texts/test_data.h"
#include "tests/text/template_reference.h"

using namespace lathe;
using namespace lathe::test;
using nlohmann::ordered_json;

namespace {

std::string read_template(const std::string& name) {
  return read_text(test_data("hf/chat/templates/" + name + ".jinja"));
}

/// The result of a template: its text, or Jinja's error message.
struct Outcome {
  std::string text, error;
  std::vector<jinja::TextSpan> assistant;
};

Outcome outcome(const ChatTemplate& chat, const jinja::Value& messages, const ChatOptions& options) {
  try {
    auto [text, assistant] = chat.render(messages, options);
    return {std::move(text), {}, std::move(assistant)};
  } catch (const jinja::TemplateError& error) {
    return {{}, error.message(), {}};
  } catch (const UserError& error) {
    return {{}, error.what(), {}};
  }
}

void check_spans(const std::string& text, const std::vector<jinja::TextSpan>& spans, const ordered_json& want) {
  REQUIRE(spans.size() == want.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    CHECK(code_points_before(text, spans[i].begin) == want[i][0].get<std::size_t>());
    CHECK(code_points_before(text, spans[i].end) == want[i][1].get<std::size_t>());
  }
}

}  // namespace

TEST_CASE("chat templates: the cases of model directories") {
  for (const std::string name : {"llama3", "qwen2", "mistral"}) {
    const ChatTemplates chats = ChatTemplates::load(test_data("hf/chat/" + name));
    const ordered_json cases = read_chat_json(name + "/chat.json");
    REQUIRE(cases.size() == 10);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const ordered_json& row = cases[i];
      CAPTURE(name, i);
      ChatOptions options;
      if (row.contains("tools")) options.tools = to_value(row["tools"]);
      if (row.contains("extra")) options.variables = to_value(row["extra"]);
      options.add_generation_prompt = row["add_generation_prompt"].get<bool>();
      const ChatTemplate& chat = chats.get({}, row.contains("tools"));
      const Outcome got = outcome(chat, to_value(row["messages"]), options);
      CHECK(got.text == row.value("text", ""));
      CHECK(got.error == row.value("error", ""));
    }
  }
}

TEST_CASE("chat templates: many families over many conversations") {
  const ordered_json data = read_chat_json("more.json");
  const jinja::Value tokens = to_value(data["tokens"]);
  std::map<std::string, ChatTemplate> chats;
  std::size_t texts = 0, errors = 0, spans = 0;
  for (const ordered_json& row : data["cases"]) {
    const auto name = row["template"].get<std::string>();
    auto at = chats.find(name);
    if (at == chats.end()) at = chats.emplace(name, ChatTemplate::parse(read_template(name), name, tokens)).first;
    ChatOptions options;
    options.tools = to_value(data["tools"][row["tools"].get<std::string>()]);
    options.variables = to_value(data["extras"][row["extra"].get<std::string>()]);
    if (options.variables.dict().find("documents")) options.documents = *options.variables.dict().find("documents");
    options.add_generation_prompt = row["ask"].get<bool>();
    options.continue_final_message = row["continued"].get<bool>();
    options.render.now = time_of(data["now"].get<std::string>());
    options.render.assistant_spans = row.contains("spans");
    const jinja::Value messages = to_value(data["conversations"][row["conversation"].get<std::string>()]);
    const Outcome got = outcome(at->second, messages, options);
    CAPTURE(name, row["conversation"], row["tools"], row["extra"], options.add_generation_prompt);
    CAPTURE(options.continue_final_message, row.value("type", ""));
    CHECK(got.text == row.value("text", ""));
    CHECK(got.error == row.value("error", ""));
    if (row.contains("spans")) check_spans(got.text, got.assistant, row["spans"]);
    texts += row.contains("text");
    errors += row.contains("error");
    spans += row.contains("spans");
  }
  CHECK(texts > 2000);
  CHECK(errors > 1000);
  CHECK(spans > 100);
}
