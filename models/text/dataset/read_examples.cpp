#include "models/text/dataset/read_examples.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/dataset/chat_spans.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"

namespace lathe {

using jinja::Kind;
using jinja::TextSpan;
using jinja::Value;

namespace {

constexpr std::uint64_t largest_file = std::uint64_t{16} << 30;
constexpr std::string_view forms = R"(an example has "text", "prompt" and "completion", or "messages")";

/// Code points [begin, end) of a text.
using Range = TextRange;

class Reader {
 public:
  Reader(const Tokenizer& tokenizer, const ExampleOptions& options) : tokenizer_(tokenizer), options_(options) {}

  Example read(const Value& line) const {
    if (!line.is(Kind::dict)) fail("the line is no JSON object", forms);
    const jinja::Dict& dict = line.dict();
    if (const Value* messages = dict.find("messages")) return conversation(*messages, dict.find("tools"));
    const bool completes = dict.find("prompt") || dict.find("completion");
    if (completes) return completion(text_of(dict, "prompt"), text_of(dict, "completion"));
    if (dict.find("text")) return whole(text_of(dict, "text"));
    std::string keys;
    for (const auto& [key, value] : dict.items()) keys += (keys.empty() ? "" : ", ") + key.string();
    fail(fmt::format("the object has {}", keys.empty() ? "no keys" : keys), forms);
  }

 private:
  [[noreturn]] static void fail(const std::string& message, std::string_view hint) {
    throw UserError(message, "dataset_line", hint);
  }

  static const std::string& text_of(const jinja::Dict& dict, std::string_view key) {
    const Value* value = dict.find(key);
    if (!value) fail(fmt::format("\"{}\" is missing", key), forms);
    if (!value->is_string()) fail(fmt::format("\"{}\" is no text", key), "give a JSON string");
    return value->string();
  }

  Example whole(const std::string& text) const {
    Example example{tokenizer_.encode(text, {.offsets = false}).ids, {}};
    example.learned.assign(example.ids.size(), 1);
    return ended(std::move(example));
  }

  Example completion(const std::string& prompt, const std::string& text) const {
    const auto start = static_cast<std::uint32_t>(text::count_characters(prompt));
    const std::string both = prompt + text;
    return ended(encoded(both, {Range{start, static_cast<std::uint32_t>(text::count_characters(both))}}, true));
  }

  Example conversation(const Value& messages, const Value* tools) const {
    if (!options_.chat)
      throw UserError("a conversation, and the model has no chat template", "chat_template",
                      "give one as chat_template.jinja in its directory, or examples of another form");
    ChatOptions chat;
    if (tools) chat.tools = *tools;
    const jinja::Rendered rendered = render_with_spans(*options_.chat, messages, chat);
    std::vector<Range> ranges;
    const std::string_view view = rendered.text;
    for (const TextSpan& span : rendered.assistant) {
      const auto begin = static_cast<std::uint32_t>(text::count_characters(view.substr(0, span.begin)));
      const std::string_view inside = view.substr(span.begin, span.end - span.begin);
      ranges.push_back({begin, begin + static_cast<std::uint32_t>(text::count_characters(inside))});
    }
    return encoded(rendered.text, ranges, false);
  }

  /// Encodes `text`. Tokens that overlap one of the ranges are learned.
  Example encoded(const std::string& text, const std::vector<Range>& ranges, bool special_tokens) const {
    Encoding encoding = tokenizer_.encode(text, {.special_tokens = special_tokens});
    Example example{std::move(encoding.ids), {}};
    for (std::size_t i = 0; i < example.ids.size(); ++i) {
      const TextRange& at = encoding.offsets[i];
      // The range of a white-space token may be trimmed to its end.
      const auto reaches = [&](const Range& range) {
        return at.begin == at.end ? range.begin < at.end && at.end <= range.end
                                  : at.begin < range.end && range.begin < at.end;
      };
      const bool added = encoding.special_mask[i] != 0;
      example.learned.push_back(!added && std::any_of(ranges.begin(), ranges.end(), reaches));
    }
    return example;
  }

  /// Appends the end token, unless the example already ends with it.
  Example ended(Example example) const {
    if (!options_.end) return example;
    if (!example.ids.empty() && example.ids.back() == *options_.end) {
      example.learned.back() = 1;
      return example;
    }
    example.ids.push_back(*options_.end);
    example.learned.push_back(1);
    return example;
  }

  const Tokenizer& tokenizer_;
  ExampleOptions options_;
};

/// Parses the JSON of a line. Other JSON layouts get an error that names the layout.
Value parse_line(std::string_view line, const std::string& place) {
  constexpr std::string_view spaces = " \t\r";
  const std::size_t first = line.find_first_not_of(spaces), last = line.find_last_not_of(spaces);
  const std::string_view shown = line.substr(first, last - first + 1);
  if (shown[0] == '[')
    throw UserError(fmt::format("{}: the line begins with '[': a JSON array is no JSONL", place), "dataset_line",
                    "write each object of the array on a line of its own, without brackets and commas between them");
  try {
    return jinja::parse_json(shown, place);
  } catch (const UserError& error) {
    if (shown.ends_with("},")) throw error.with_note("JSONL has no commas between its lines");
    if (shown[0] == '{' && !shown.ends_with('}'))
      throw error.with_note("in JSONL each object is one line; this one does not end in '}'");
    throw;
  }
}

}  // namespace

std::vector<Example> parse_examples(std::string_view jsonl, std::string_view name, const Tokenizer& tokenizer,
                                    const ExampleOptions& options) {
  const Reader reader(tokenizer, options);
  std::vector<Example> examples;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < jsonl.size();) {
    const std::size_t end = std::min(jsonl.find('\n', at), jsonl.size());
    const std::string_view line = jsonl.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", name, number);
    const Value value = parse_line(line, place);
    try {
      examples.push_back(reader.read(value));
    } catch (const UserError& error) {
      throw error.with_note(fmt::format("in {}", place));
    }
  }
  if (examples.empty()) throw UserError(fmt::format("{} holds no examples", name), "dataset_empty", forms);
  return examples;
}

std::vector<Example> read_examples(const std::filesystem::path& file, const Tokenizer& tokenizer,
                                   const ExampleOptions& options) {
  return parse_examples(read_file(file, largest_file), file.string(), tokenizer, options);
}

}  // namespace lathe
