#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "models/text/chat/chat_template.h"
#include "models/text/template/values/text_forms.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"

namespace lathe {

using jinja::Kind;
using jinja::Value;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t template_limit = std::uint64_t{1} << 24, config_limit = std::uint64_t{1} << 28;  // bytes

struct Text {
  std::string text, file;  ///< `file` is the name in messages
};
using Texts = std::map<std::string, Text>;

Value read_json(const fs::path& path) {
  Value value = jinja::parse_json(read_file(path, config_limit), path.string());
  if (!value.is(Kind::dict)) throw UserError(fmt::format("{}: not an object", path.string()), "json");
  return value;
}

const std::string& string_of(const Value& object, std::string_view key, const std::string& file) {
  const Value* value = object.is(Kind::dict) ? object.dict().find(key) : nullptr;
  if (!value || !value->is_string())
    throw UserError(fmt::format("{}: a chat template has a name and a template, both strings", file),
                    "chat_template");
  return value->string();
}

/// Adds the template under "chat_template", or the named templates of a list.
void add_from_json(const Value& config, const std::string& file, Texts& texts) {
  const Value* found = config.dict().find("chat_template");
  if (!found || found->is_none()) return;
  if (!found->is(Kind::list)) {
    texts.emplace("default", Text{string_of(config, "chat_template", file), file});
    return;
  }
  for (const Value& entry : found->items()) {
    const std::string& name = string_of(entry, "name", file);
    texts.emplace(name, Text{string_of(entry, "template", file), fmt::format("{}({})", file, name)});
  }
}

void add_from_files(const fs::path& directory, Texts& texts) {
  const fs::path plain = directory / "chat_template.jinja", more = directory / "additional_chat_templates";
  if (path_exists(plain)) texts["default"] = {read_file(plain, template_limit), plain.filename().string()};
  if (!is_folder(more)) return;
  for (const fs::path& entry : list_folder(more))
    if (entry.extension() == ".jinja")
      texts[entry.stem().string()] = {read_file(entry, template_limit), entry.filename().string()};
}

/// Adds special tokens: names that end in _token, whose values are strings or objects with a content.
void add_tokens(const Value& config, jinja::DictBuilder& tokens) {
  for (const auto& [key, value] : config.dict().items()) {
    const Value* text = value.is(Kind::dict) ? value.dict().find("content") : &value;
    if (key.string().ends_with("_token") && text && text->is_string() && !tokens.find(key.string()))
      tokens.set(key.string(), *text);
  }
  for (const char* group : {"extra_special_tokens", "model_specific_special_tokens"})
    if (const Value* named = config.dict().find(group); named && named->is(Kind::dict)) add_tokens(*named, tokens);
}

}  // namespace

std::optional<ChatTemplates> ChatTemplates::find(const fs::path& directory) {
  Texts texts;
  jinja::DictBuilder tokens;
  add_from_files(directory, texts);
  const bool in_files = !texts.empty();
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.json"}) {
    const fs::path path = directory / name;
    if (!path_exists(path)) continue;
    const Value config = read_json(path);
    if (!in_files) add_from_json(config, name, texts);
    add_tokens(config, tokens);
  }
  if (texts.empty()) return std::nullopt;
  const Value all_tokens = std::move(tokens).finish();
  ChatTemplates loaded;
  for (const auto& [name, text] : texts)
    loaded.templates_.emplace_back(name, ChatTemplate::parse(text.text, text.file, all_tokens));
  return loaded;
}

ChatTemplates ChatTemplates::load(const fs::path& directory) {
  if (auto found = find(directory)) return *std::move(found);
  throw UserError(fmt::format("{}: no chat template", directory.string()), "chat_template",
                  "a base model has none; give one as chat_template.jinja");
}

std::vector<std::string> ChatTemplates::names() const {
  std::vector<std::string> names;
  for (const auto& [name, chat] : templates_) names.push_back(name);
  return names;
}

const ChatTemplate& ChatTemplates::get(std::string_view name, bool with_tools) const {
  const auto find = [&](std::string_view called) {
    return std::find_if(templates_.begin(), templates_.end(),
                        [&](const auto& entry) { return entry.first == called; });
  };
  auto at = templates_.end();
  if (!name.empty()) {
    at = find(name);
  } else {
    if (with_tools) at = find("tool_use");
    if (at == templates_.end()) at = find("default");
    if (at == templates_.end() && templates_.size() == 1) at = templates_.begin();
  }
  if (at != templates_.end()) return at->second;
  std::string known;
  for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
  throw UserError(name.empty() ? "the model has several chat templates and none is the default"
                               : fmt::format("the model has no chat template \"{}\"", name),
                  "chat_template", "it has " + known);
}

}  // namespace lathe
