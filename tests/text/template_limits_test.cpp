#include <catch2/catch.hpp>
#include <random>

#include "models/text/chat/chat_template.h"
#include "models/text/template/values/object.h"
#include "tests/support/texts/test_data.h"
#include "tests/text/template_reference.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

/// With a lower work limit, so that the tests are fast.
std::string rendered(const std::string& text) {
  const jinja::RenderLimits limits{.work = 1u << 25};
  return jinja::Template::parse(text, "hostile").render(jinja::Value::dict({}), {.now = {}, .limits = limits}).text;
}

/// Returns the label of a template's error; empty for none, "no template" for a ParseError.
std::string label_of(const std::string& text, const jinja::Value& variables, const jinja::RenderLimits& limits) {
  try {
    jinja::Template::parse(text, "changed").render(variables, {.now = {}, .limits = limits});
  } catch (const jinja::TemplateError& error) {
    return error.label();
  } catch (const ParseError&) {
    return "no template";
  }
  return {};
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

/// Prints many names.
std::string names(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += "{{ v" + std::to_string(i) + " }}";
  return all;
}

}  // namespace

TEST_CASE("templates: endless or memory-exhausting templates end in an error") {
  const std::string hostile[] = {
      // Recursion.
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}"
      "{{ g() }}",
      "{% set ns = namespace() %}{% macro f(x=ns.f()) %}{% endmacro %}{% set ns.f = f %}{{ f() }}",
      "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
      "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns | string }}",
      "{% set ns = namespace(a=[]) %}{% for i in range(100000) %}{% set ns.a = [ns.a] %}{% endfor %}",
      // Chains of iterators.
      "{% set ns = namespace(a=[1]) %}{% for i in range(100000) %}{% set ns.a = ns.a | map('string') %}{% endfor %}"
      "{{ ns.a | list }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(100000) %}{% set ns.a = ns.a | select %}{% endfor %}"
      "{{ ns.a | first }}",
      // Loops.
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% for a in range(99999) %}{% for b in range(99999) if b < 0 %}{% endfor %}{% endfor %}",
      "{% for a in range(99999) %}{{ (range(99999) | list) == 1 }}{% endfor %}",
      "{% for a in range(99999) %}{{ 1 if 'b' in 'a' * 9999 }}{% endfor %}",
      "{% for a in range(99999) %}{% set s = 'a' * 99999 %}{% endfor %}",
      "{% for a in range(99999) %}{{ range(99999) | sum }}{% endfor %}",
      "{% for a in range(99999) %}{% set x = range(99999) | sort %}{% endfor %}",
      // Sizes.
      "{{ 'a' * 100000000000 }}",
      "{{ [0] * 100000000000 }}",
      "{{ ('a' * 9999).center(100000000000) }}",
      "{{ 'a' | indent(100000000000, true) }}",
      "{{ ('a' * 99999).replace('a', 'b' * 99999) }}",
      "{{ ('a' * 99999) | replace('', 'b' * 99999) }}",
      "{{ [1] | tojson(indent=100000000000) }}",
      "{% set ns = namespace(s='aa') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(90) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      "{% for i in range(99999) %}{{ 'a' * 9999 }}{% endfor %}",
      "{% set x = range(99999) | list %}{% for i in x %}{% set y = x[1:] %}{% endfor %}",
      "{{ 2 ** 999999999 }}",
  };
  for (const std::string& text : hostile) {
    CAPTURE(text);
    CHECK_THROWS_WITH(rendered(text), Contains("hostile:1: ") && Contains("[template_limit]"));
  }
}

TEST_CASE("templates: the work limit counts every operation") {
  // Each would run for minutes or hours if a step of it had the cost for an ordinary text or dict.
  const std::string big = "{% set big = 'a' * 1000000 %}", other = "{% set other = 'a' * 500000 ~ 'b' %}",
                    loop = "{% for i in range(99999) %}{% for j in range(99999) %}", end = "{% endfor %}{% endfor %}",
                    pairs = "{% set d = dict(range(99999) | map('string') | batch(2, '') | list) %}";
  const std::string hostile[] = {
      big + other + loop + "{{ 1 if other in big }}" + end,
      big + other + loop + "{{ big.find(other) }}" + end,
      big + other + loop + "{{ big.rfind(other) }}" + end,
      big + other + loop + "{{ big.count(other) }}" + end,
      big + other + loop + "{{ big.split(other) | length }}" + end,
      big + other + loop + "{{ big.rsplit(other) | length }}" + end,
      big + other + loop + "{{ big.rpartition(other) | length }}" + end,
      big + other + loop + "{{ big | replace(other, '') | length }}" + end,
      big + other + loop + "{{ big.strip(other[::-1]) | length }}" + end,
      big + other + loop + "{{ 1 if big < big ~ 'a' }}" + end,
      big + loop + "{{ {}[big] }}" + end,
      big + loop + "{{ 'x'[big] }}" + end,
      big + loop + "{{ big.startswith((big, big ~ 'b') * 999) }}" + end,
      big + "{% set dots = big.replace('a', '.') %}" + loop + "{{ [] | sort(attribute=dots) }}" + end,
      big + loop + "{{ [] | join('', attribute=big.replace('a', '.')) }}" + end,
      loop + "{{ " + repeated("name", 100000) + " }}" + end,
      loop + "{{ {}." + repeated("name", 100000) + " }}" + end,
      repeated("\n", 1000000) + loop + "{{ 1 if 0 }}" + end,
      loop + "{% if 0 %}" + names(20000) + "{% endif %}" + end,
      "{% macro f() %}{% if 0 %}" + names(20000) + "{% endif %}{% endmacro %}" + loop + "{{ f() }}" + end,
      pairs + "{% macro f() %}{{ kwargs }}{% endmacro %}" + loop + "{{ f(**d) | length }}" + end,
      pairs + loop + "{% set ns = namespace(**d) %}" + end,
      "{% set c = cycler(*range(99999)) %}" + loop + "{{ c.current }}" + end,
  };
  for (const std::string& text : hostile) {
    CAPTURE(text.substr(0, 300));
    CHECK(label_of(text, jinja::Value::dict({}), {.work = 1u << 23}) == "template_limit");
  }
}

TEST_CASE("templates: a long template parses in linear time") {
  std::string branches = "{% if 0 %}", sequence;
  for (int i = 0; i < 20000; ++i) {
    branches += "{% elif x" + std::to_string(i) + " %}";
    sequence += "{% if y" + std::to_string(i) + " %}{% set z" + std::to_string(i) + " = 1 %}{% endif %}";
  }
  CHECK(rendered(branches + "{% endif %}" + sequence + "end") == "end");
}

TEST_CASE("templates: numbers at the limits of their range") {
  const std::string most = "9223372036854775807", least = "(-9223372036854775807 - 1)";
  for (const std::string& number : {most, least})
    for (const std::string use : {"'x'.center(N)",
                                  "'x'.zfill(N)",
                                  "'-x'.zfill(N)",
                                  "'x' | truncate(N)",
                                  "'x' | truncate(2, leeway=N)",
                                  "'abc'[N:]",
                                  "'abc'[:N]",
                                  "'abc'[::N]",
                                  "[1, 2][N:N:N]",
                                  "[1, 2][N]",
                                  "range(N, 5, 1)",
                                  "range(0, 5, N)",
                                  "range(-9223372036854775807, 9223372036854775807, 4611686018427387904)[::2] | list",
                                  "N | round(-1)",
                                  "N | round(-18)",
                                  "N | abs",
                                  "-N",
                                  "N // -1",
                                  "N % -1",
                                  "N - 1 + 2",
                                  "'a' * N",
                                  "'abc'.find('c', N)",
                                  "'abc'.count('c', N, N)",
                                  "[1] | batch(N) | list",
                                  "[1] | slice(N) | list",
                                  "'a' | indent(N)",
                                  "'a,b'.split(',', N)",
                                  "'a,b'.replace(',', '', N)",
                                  "[1] | tojson(indent=N)",
                                  "1.5 | round(N)",
                                  "N ** 2"}) {
      std::string text = use;
      for (std::size_t at = text.find('N'); at != std::string::npos; at = text.find('N')) text.replace(at, 1, number);
      CAPTURE(text);
      const std::string label = label_of("{{ " + text + " }}", jinja::Value::dict({}), {.work = 1u << 20});
      CHECK((label.empty() || label == "template_limit" || label == "template_operation"));
    }
}

TEST_CASE("templates: requested limits apply") {
  const auto render = [](const std::string& text, const jinja::RenderLimits& limits) {
    return jinja::Template::parse(text, "t").render(jinja::Value::dict({}), {.now = {}, .limits = limits}).text;
  };
  const std::string loop = "{% for i in range(10) %}abcde{% endfor %}";
  CHECK(render(loop, {.output = 50}).size() == 50);
  CHECK_THROWS_WITH(render(loop, {.output = 49}), Contains("more than 49 bytes") && Contains("[template_limit]"));
  CHECK_THROWS_WITH(render(loop, {.work = 100}), Contains("[template_limit]"));
  const std::string recursion = "{% macro f(n) %}{{ f(n - 1) if n else 'end' }}{% endmacro %}{{ f(20) }}";
  CHECK(render(recursion, {}) == "end");
  CHECK_THROWS_WITH(render(recursion, {.depth = 50}), Contains("at most 50 deep") && Contains("[template_limit]"));
}

TEST_CASE("templates: text that is nested too deeply is rejected") {
  const std::pair<std::string, std::string> brackets[] = {
      {"(", ")"}, {"[", "]"}, {"{1: ", "}"}, {"-", ""}, {"not ", ""}};
  for (const auto& [open, close] : brackets)
    CHECK_THROWS_AS(rendered("{{ " + repeated(open, 100000) + "1" + repeated(close, 100000) + " }}"), ParseError);
  for (const std::string more : {".a", "[0]", "|list", "()", " ~ 1", " + 1", " is none", " if 1 else 1", " == 1"})
    CHECK_NOTHROW(label_of("{{ 1" + repeated(more, 100000) + " }}", jinja::Value::dict({}), {}));
  CHECK_THROWS_AS(rendered(repeated("{% if 1 %}", 100000)), ParseError);
  CHECK_THROWS_AS(rendered(repeated("{% for x in y %}", 100000)), ParseError);
  CHECK_THROWS_AS(rendered(repeated("{% macro f() %}", 100000)), ParseError);
  CHECK(rendered("{% if 0 %}" + repeated("{% elif 0 %}", 10000) + "{% else %}x{% endif %}") == "x");
}

TEST_CASE("templates: any file renders or ends in an error") {
  const nlohmann::ordered_json data = read_chat_json("more.json");
  jinja::DictBuilder builder(to_value(data["tokens"]).dict());
  builder.set("messages", to_value(data["conversations"].front()));
  builder.set("tools", to_value(data["tools"].back()));
  const jinja::Value variables = std::move(builder).finish();
  std::vector<std::string> texts;
  for (const auto& file : std::filesystem::directory_iterator(test_data("hf/chat/templates")))
    texts.push_back(read_text(file.path()));
  std::sort(texts.begin(), texts.end());
  std::mt19937_64 random(1);
  const auto below = [&](std::size_t bound) { return random() % std::max<std::size_t>(bound, 1); };
  std::map<std::string, int> labels;
  for (int round = 0; round < 1000; ++round) {
    std::string text = texts[below(texts.size())];
    for (std::size_t change = 1 + below(4); change > 0; --change) {
      const std::string& other = texts[below(texts.size())];
      const std::size_t size = below(40);
      text.replace(below(text.size()), below(40), other.substr(below(other.size()), size));
    }
    CAPTURE(text);
    ++labels[label_of(text, variables, {.work = 1u << 20})];
  }
  CHECK(labels[""] > 20);
  CHECK(labels["no template"] > 100);
  CHECK(labels.size() > 2);
}
