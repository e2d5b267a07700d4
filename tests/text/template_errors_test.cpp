#include <catch2/catch.hpp>

#include "models/text/chat/chat_template.h"

using namespace lathe;
using Catch::Matchers::Contains;
using jinja::Value;

namespace {

std::string render(const std::string& text) {
  return jinja::Template::parse(text, "chat.jinja")
      .render(Value::dict({{"s", "text"}, {"l", Value::list({1})}}))
      .text;
}

}  // namespace

TEST_CASE("templates: errors name the line, the expression, and the remedy") {
  CHECK_THROWS_WITH(
      render("a\n{{ s }}\n{{ nothing.more }}"),
      Contains("chat.jinja:3: nothing.more: 'nothing' is undefined  [template_undefined]") && Contains("is defined"));
  CHECK_THROWS_WITH(render("{% for x in l %}\n  {{ x + s }}\n{% endfor %}"),
                    Contains("chat.jinja:2: x + s: ") && Contains("[template_operation]"));
  CHECK_THROWS_WITH(render("{% macro f() %}\n{{ 1 // 0 }}{% endmacro %}\n\n{{ f() }}"),
                    Contains("chat.jinja:2: 1 // 0: "));
  CHECK_THROWS_WITH(render("\n{{ raise_exception('roles must alternate') }}"),
                    Contains("chat.jinja:2: raise_exception('roles must alternate'): roles must alternate  "
                             "[template_raise]"));
  CHECK_THROWS_WITH(render("\n\n{% set x = l.append(2) %}"),
                    Contains("chat.jinja:3: ") && Contains("[template_unsafe]") && Contains("l + [x]"));
  CHECK_THROWS_WITH(render("\n{{ '%d' % 3 }}"), Contains("chat.jinja:2: '%d' % 3: ") &&
                                                    Contains("[template_unsupported]") &&
                                                    Contains("docs/chat-templates.md"));
}

TEST_CASE("templates: a long error message is shortened") {
  const auto error_of = [](const std::string& text) {
    try {
      render(text);
    } catch (const jinja::TemplateError& error) {
      return error.message();
    }
    return std::string();
  };
  CHECK(error_of("{{ raise_exception('x' * 2000) }}") == std::string(2000, 'x'));
  CHECK(error_of("{{ raise_exception('x' * 2001) }}") == std::string(2000, 'x') + "... (2001 bytes)");
  CHECK(error_of("{{ raise_exception('\u20ac' * 1000000) }}").ends_with("\u20ac... (3000000 bytes)"));
}

TEST_CASE("templates: a syntax error reports its line and column") {
  CHECK_THROWS_WITH(render("a\n{% if s %}\nb"), Contains("chat.jinja:3:1: ") && Contains("endif"));
  CHECK_THROWS_WITH(render("a\n  {{ s + }}"), Contains("chat.jinja:2:"));
  CHECK_THROWS_WITH(render("\n\n{% nope %}"), Contains("chat.jinja:3:4: ") && Contains("nope"));
  CHECK_THROWS_WITH(render("\n{{ s | nope }}"), Contains("chat.jinja:2:") && Contains("No filter named 'nope'"));
}

TEST_CASE("chat templates: options and messages of the wrong kind") {
  const ChatTemplate chat = ChatTemplate::parse("{% for m in messages %}{{ m.content }}{% endfor %}", "chat.jinja");
  const std::vector<ChatMessage> messages{{"user", "a"}, {"assistant", "b"}};
  CHECK(chat.render(messages).text == "ab");
  CHECK_THROWS_WITH(chat.render(std::vector<ChatMessage>{}), Contains("[chat_messages]"));
  CHECK_THROWS_WITH(chat.render(Value::list({1})), Contains("[chat_messages]"));
  ChatOptions both;
  both.add_generation_prompt = both.continue_final_message = true;
  CHECK_THROWS_WITH(chat.render(messages, both), Contains("[chat_options]"));
  ChatOptions tools;
  tools.tools = Value("get_weather");
  CHECK_THROWS_WITH(chat.render(messages, tools), Contains("[chat_options]"));
  CHECK_THROWS_WITH(chat.render(std::vector<ChatMessage>{{"user", "\xff"}}), Contains("[template_input]"));
}
