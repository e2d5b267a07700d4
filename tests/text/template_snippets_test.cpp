#include <catch2/catch.hpp>

#include "models/text/template/template.h"
#include "tests/text/template_reference.h"

using namespace lathe;
using namespace lathe::test;
using nlohmann::ordered_json;

namespace {

/// Returns {"text": ..}, or {"error": ..} with the "line" of a ParseError, like the file.
ordered_json outcome(const std::string& text, const jinja::Value& variables, const std::tm& now) {
  try {
    jinja::RenderOptions options;
    options.now = now;
    return {{"text", jinja::Template::parse(text, "snippet").render(variables, options).text}};
  } catch (const jinja::TemplateError& error) {
    return {{"error", error.message()}};
  } catch (const ParseError& error) {
    return {{"error", error.what()}, {"line", error.line()}};
  }
}

}  // namespace

TEST_CASE("templates: small ones match Jinja, or fail with its message") {
  const ordered_json data = read_chat_json("snippets.json");
  const jinja::Value variables = to_value(data["variables"]);
  const std::tm now = time_of(data["now"].get<std::string>());
  for (const ordered_json& row : data["rows"]) {
    const auto text = row[0].get<std::string>();
    const ordered_json &want = row[1], got = outcome(text, variables, now);
    CAPTURE(text, want.dump(), got.dump());
    CHECK(got.contains("text") == want.contains("text"));
    if (want.contains("text")) CHECK(got.value("text", "") == want["text"].get<std::string>());
    if (want.contains("line")) CHECK(got.value("line", 0) == want["line"].get<int>());
    if (want.contains("error") && !want.contains("line") && !want.contains("loose"))
      CHECK(got.value("error", "") == want["error"].get<std::string>());
  }
  CHECK(data["rows"].size() > 400);
}
