#include <catch2/catch.hpp>
#include <map>

#include "models/text/template/partial/partial_renders.h"
#include "tests/text/random_templates.h"

using namespace lathe;
using namespace lathe::jinja;
using lathe::test::RandomTemplates;

namespace {

using Part = PartialRenders::Part;

std::string text_of(const TextPieces& pieces) {
  std::string text;
  for (const std::string_view piece : pieces.pieces()) text += piece;
  return text;
}

/// Returns the text of a part without reuse; "error: " and the label if the template fails.
std::string plain(const Template& program, std::vector<Value> list, const Part& part, const RenderOptions& options) {
  list.resize(part.count);
  if (part.replaced) list[part.replaced->first] = part.replaced->second;
  try {
    return program
        .render(Value::dict({{"messages", Value::list(std::move(list))}, {"add_generation_prompt", part.flag}}),
                options)
        .text;
  } catch (const TemplateError& error) {
    return "error: " + error.label() + error.message();
  }
}

std::string reused(PartialRenders& renders, const Part& part) {
  try {
    return text_of(renders.render(part));
  } catch (const TemplateError& error) {
    return "error: " + error.label() + error.message();
  }
}

Value with_content(const Value& message, const std::string& content) {
  DictBuilder changed(message.dict());
  changed.set("content", content);
  return std::move(changed).finish();
}

/// Returns all parts of a list, with and without a replaced item.
std::vector<Part> all_parts(const std::vector<Value>& list) {
  std::vector<Part> parts;
  for (std::size_t count = 1; count <= list.size(); ++count)
    for (const bool flag : {false, true}) {
      parts.push_back({count, flag});
      for (std::size_t at = 0; at < count; ++at)
        parts.push_back({count, flag, std::pair(at, with_content(list[at], at % 2 == 0 ? "A...B" : "b"))});
    }
  return parts;
}

struct RenderComparison {
  int templates = 0, parts = 0, failed = 0;
  std::uint64_t work = 0, plain_work = 0;
};

/// Compares all parts for random templates. `limit` computes limits from the work of the first render.
template <class Limit>
RenderComparison compare(std::uint64_t seed, int count, const Limit& limit) {
  RandomTemplates random(seed);
  RenderComparison total;
  for (int round = 0; round < count; ++round) {
    const std::string text = random.text();
    const std::vector<Value> list = random.messages(9);
    const Template program = Template::parse(text, "random");
    RenderOptions options;
    std::uint64_t work = 0;
    options.work = &work;
    const std::string whole = plain(program, list, {list.size(), false}, options);
    if (whole.starts_with("error: ")) continue;
    options.limits = limit(random, work, whole.size());
    options.work = &total.plain_work;
    if (plain(program, list, {list.size(), false}, options).starts_with("error: ")) continue;
    PartialRenders renders(program,
                           {.variables = Value::dict({}),
                            .list_name = "messages",
                            .list = list,
                            .flag_name = "add_generation_prompt",
                            .flag = false},
                           options);
    REQUIRE(renders.whole().text == whole);
    ++total.templates;
    for (const Part& part : all_parts(list)) {
      INFO(round << ": " << text << "\nmessages " << list.size() << ", part " << part.count
                 << (part.flag ? " add" : "")
                 << (part.replaced ? " replaced " + std::to_string(part.replaced->first) : ""));
      const std::string expected = plain(program, list, part, options);
      REQUIRE(reused(renders, part) == expected);
      ++total.parts;
      total.failed += expected.starts_with("error: ");
    }
    total.work += renders.work();
  }
  return total;
}

}  // namespace

TEST_CASE("renders of parts of a list: the text matches a full render") {
  const RenderComparison total =
      compare(1, 1500, [](RandomTemplates&, std::uint64_t, std::size_t) { return RenderLimits(); });
  CHECK(total.templates > 700);
  CHECK(total.parts > 20000);
  CHECK(total.failed > 300);
  CHECK(total.work < total.plain_work);
}

TEST_CASE("renders of parts of a list: limits match a full render") {
  const RenderComparison total = compare(2, 600, [](RandomTemplates& random, std::uint64_t work, std::size_t output) {
    const bool of_work = random.below(2) == 0;
    return of_work ? RenderLimits{.work = work + random.below(30)} : RenderLimits{.output = output + random.below(4)};
  });
  CHECK(total.templates > 300);
  CHECK(total.failed > 300);
}

TEST_CASE("renders of parts of a list: a variable that is another slice of the list") {
  const Template program = Template::parse(
      "{% set list = messages[1:] if messages | length > 3 else messages %}{% for message in messages %}"
      "{{ list[loop.index0].content if list[loop.index0] is defined }};{% endfor %}",
      "t");
  std::vector<Value> list;
  for (int i = 0; i < 6; ++i) list.push_back(Value::dict({{"role", "user"}, {"content", std::to_string(i)}}));
  PartialRenders renders(
      program, {.variables = Value::dict({}), .list_name = "messages", .list = list, .flag_name = "add"}, {});
  CHECK(renders.whole().text == "1;2;3;4;5;;");
  CHECK(reused(renders, {2, false}) == "0;1;");
  CHECK(reused(renders, {5, false}) == "1;2;3;4;;");
}
