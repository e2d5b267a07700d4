#include "tools/options/adapter_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe::tools {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

[[noreturn]] void fail(const std::string& part, std::string_view hint) {
  throw UserError(fmt::format("--lora: {}", part), "lora_option", hint);
}

template <class Number>
Number number(const std::string& key, const std::string& value) {
  Number found{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), found);
  if (error != std::errc() || end != value.data() + value.size())
    fail(fmt::format("{} is '{}'", key, value), "give a number");
  return found;
}

bool truth(const std::string& key, const std::string& value) {
  if (value != "true" && value != "false") fail(fmt::format("{} is '{}'", key, value), "give true or false");
  return value == "true";
}

using Set = std::function<void(pretrained::LoraConfig&, const std::string& key, const std::string& value)>;

const std::map<std::string, Set, std::less<>>& setters() {
  using Lora = pretrained::LoraConfig;
  static const std::map<std::string, Set, std::less<>> all{
      {"r",
       [](Lora& lora, const auto& key, const auto& value) {
         lora.r = number<std::int64_t>(key, value);
         if (lora.r < 1 || lora.r > pretrained::largest_rank)
           fail(fmt::format("r is {}", lora.r), fmt::format("give a rank from 1 to {}", pretrained::largest_rank));
       }},
      {"alpha",
       [](Lora& lora, const auto& key, const auto& value) {
         lora.alpha = number<double>(key, value);
         if (!std::isfinite(lora.alpha)) fail(fmt::format("alpha is {}", lora.alpha), "give a finite number");
       }},
      {"dropout",
       [](Lora& lora, const auto& key, const auto& value) {
         lora.dropout = number<double>(key, value);
         if (!(lora.dropout >= 0 && lora.dropout < 1))
           fail(fmt::format("dropout is {}", lora.dropout), "give a rate of at least 0 and below 1");
       }},
      {"rslora", [](Lora& lora, const auto& key, const auto& value) { lora.rslora = truth(key, value); }},
      {"targets",
       [](Lora& lora, const auto&, const auto& value) {
         if (value == "all-linear")
           lora.targets = value;
         else
           lora.targets = split(value, ':');
       }},
      {"save", [](Lora& lora, const auto&, const auto& value) { lora.modules_to_save = split(value, ':'); }},
  };
  return all;
}

}  // namespace

void add_adapter_option(CLI::App& command, std::filesystem::path& adapter) {
  command.add_option("--adapter", adapter, "PEFT directory of a LoRA adapter to use on the model (default: none)");
}

pretrained::LoraConfig parse_lora(const std::string& option) {
  pretrained::LoraConfig lora{.r = 16, .alpha = 0};
  bool has_alpha = false;
  for (const std::string& part : split(option, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const auto found = setters().find(key);
    if (equals == std::string::npos || found == setters().end()) {
      std::vector<std::string_view> known;
      for (const auto& [name, set] : setters()) known.push_back(name);
      fail(fmt::format("'{}' is not a known key=value", part), did_you_mean_or_list(key, known, "the keys are"));
    }
    found->second(lora, key, part.substr(equals + 1));
    has_alpha = has_alpha || key == "alpha";
  }
  if (!has_alpha) lora.alpha = 2 * static_cast<double>(lora.r);
  return lora;
}

void require_one_adapter(const std::optional<std::string>& lora, const pretrained::AdaptedFolders& folders) {
  if (lora && !folders.adapter.empty())
    throw UserError(fmt::format("--lora {}: the adapter in {} has its own settings", *lora, folders.adapter.string()),
                    "lora_option", "leave out --lora to train it further, or give the model without an adapter");
}

CLI::Option* add_lora_option(CLI::App& command, std::optional<std::string>& lora) {
  return command
      .add_option_function<std::string>(
          "--lora", [&lora](const std::string& settings) { lora = settings; },
          "Train only a LoRA adapter, with settings such as r=16,alpha=32,targets=q_proj:v_proj (default: train all "
          "weights)")
      ->expected(0, 1);
}

}  // namespace lathe::tools
