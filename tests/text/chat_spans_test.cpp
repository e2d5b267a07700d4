#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "models/text/dataset/chat_spans.h"
#include "tests/support/texts/test_data.h"
#include "tests/text/random_templates.h"
#include "tests/text/template_reference.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;
using jinja::Value;

namespace {

const Value tokens = Value::dict({{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}});

std::map<std::string, ChatTemplate> all_templates() {
  std::map<std::string, ChatTemplate> all;
  for (const auto& file : std::filesystem::directory_iterator(test_data("hf/chat/templates"))) {
    const std::string name = file.path().stem().string();
    all.emplace(name, ChatTemplate::parse(read_text(file.path()), name, tokens));
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(test_data("hf")))
    if (file.path().filename() == "tokenizer_config.json")
      if (const auto found = ChatTemplates::find(file.path().parent_path()))
        for (const std::string& name : found->names())
          all.emplace(file.path().string() + ":" + name, found->get(name));
  return all;
}

/// Returns the text with its spans, or the error.
std::string outcome(const ChatTemplate& chat, const Value& messages, const ChatOptions& options,
                    const PartOptions& parts) {
  try {
    const jinja::Rendered rendered = render_with_spans(chat, messages, options, parts);
    std::string shown = rendered.text;
    for (const auto& [begin, end] : rendered.assistant)
      shown += "\n" + std::to_string(begin) + " to " + std::to_string(end);
    return shown;
  } catch (const UserError& error) {
    return error.what();
  }
}

/// Returns whether spans were found.
bool check_same(const ChatTemplate& chat, const Value& messages, const ChatOptions& options) {
  const std::string plain = outcome(chat, messages, options, {.reuse = false, .work_factor = 1000});
  REQUIRE(outcome(chat, messages, options, {.work_factor = 1000}) == plain);
  return plain.find(" to ") != std::string::npos;
}

ChatOptions random_options(RandomTemplates& random) {
  ChatOptions options;
  options.add_generation_prompt = random.below(4) == 0;
  if (random.below(3) == 0) {
    const Value function =
        Value::dict({{"name", "f"},
                     {"description", "does f"},
                     {"parameters", Value::dict({{"type", "object"}, {"properties", Value::dict({})}})}});
    options.tools = Value::list({Value::dict({{"type", "function"}, {"function", function}})});
  }
  return options;
}

/// Short messages of a user and an assistant.
Value long_conversation(int size) {
  std::vector<Value> all;
  for (int i = 0; i < size; ++i)
    all.push_back(
        Value::dict({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", "message " + std::to_string(i % 10)}}));
  return Value::list(all);
}

std::uint64_t work_of(const ChatTemplate& chat, int size, bool reuse = true) {
  std::uint64_t work = 0;
  ChatOptions options;
  options.tools = Value::list({});
  (void)render_with_spans(chat, long_conversation(size), options, {.reuse = reuse, .work = &work});
  return work;
}

}  // namespace

TEST_CASE("assistant's turns: reuse gives the same spans for the templates of models") {
  RandomTemplates random(5);
  for (const auto& [name, chat] : all_templates()) {
    INFO(name);
    int found = 0;
    for (int round = 0; round < 40; ++round)
      found += check_same(chat, Value::list(random.messages(10)), random_options(random));
    CHECK(found > 2);
  }
}

TEST_CASE("assistant's turns: reuse gives the same spans for templates that look at the last message") {
  RandomTemplates random(6);
  int found = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::string text = random.text();
    INFO(round << ": " << text);
    const ChatTemplate chat = ChatTemplate::parse(text, "random", tokens);
    found += check_same(chat, Value::list(random.messages(10)), random_options(random));
  }
  CHECK(found > 500);
}

TEST_CASE("assistant's turns: the work is linear in the number of messages") {
  const ChatTemplates qwen3 = ChatTemplates::load(test_data("hf/models/qwen3/model"));
  CHECK(work_of(qwen3.get(), 40, false) > 5 * work_of(qwen3.get(), 40));
  CHECK(work_of(qwen3.get(), 400) < 21 * work_of(qwen3.get(), 200) / 10);
  CHECK(work_of(qwen3.get(), 800) < 21 * work_of(qwen3.get(), 400) / 10);
  for (const auto& [name, chat] : all_templates()) {
    // The template of mistral_v3 builds a list of messages and compares each one with the last.
    if (chat.marks_assistant() || name == "mistral_v3") continue;
    INFO(name);
    const std::uint64_t half = work_of(chat, 100);
    CHECK(work_of(chat, 200) < 21 * half / 10);
  }
}

TEST_CASE("assistant's turns: the total work of all renders is bounded") {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}{{ m.role }}{{ m.content }}{{ messages | length }};{% endfor %}", "t");
  ChatOptions options;
  options.render.limits.work = 1 << 16;
  CHECK_NOTHROW(render_with_spans(chat, long_conversation(20), options));
  for (const bool reuse : {false, true})
    CHECK_THROWS_WITH(render_with_spans(chat, long_conversation(400), options, {.reuse = reuse}),
                      Contains("a conversation of 400 messages") && Contains("[chat_spans_work]") &&
                          Contains("{% generation %}") && Contains("split the conversation"));
}
