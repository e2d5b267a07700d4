#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "models/text/tokenizer/tokenizer.h"
#include "tools/commands/commands.h"
#include "tools/inputs/files.h"

namespace lathe::tools {

namespace {

struct TokenizeOptions {
  std::filesystem::path path;
  std::vector<std::string> texts, files;
  std::string output = "-";
  bool plain = false, json = false, ids = false;
};

std::string token_text(const Tokenizer& tokenizer, TokenId id) { return tokenizer.token_of(id).value_or("?"); }

/// A line per token: its id, its range of code points in the text, and the token as in the vocabulary.
std::string table_of_tokens(const Tokenizer& tokenizer, const Encoding& encoding) {
  std::string text;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const TextRange range = encoding.offsets[i];
    const bool added = encoding.special_mask[i] != 0;
    text += fmt::format("{:>8}  {:>11}  {}\n", encoding.ids[i],
                        added ? "added" : fmt::format("{}..{}", range.begin, range.end),
                        visible(token_text(tokenizer, encoding.ids[i])));
  }
  return text;
}

nlohmann::ordered_json json_of_tokens(const Tokenizer& tokenizer, const Encoding& encoding) {
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array(), offsets = tokens;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    tokens.push_back(token_text(tokenizer, encoding.ids[i]));
    offsets.push_back({encoding.offsets[i].begin, encoding.offsets[i].end});
  }
  return {{"ids", encoding.ids}, {"tokens", std::move(tokens)}, {"offsets", std::move(offsets)}};
}

std::vector<std::string> texts_to_tokenize(const TokenizeOptions& options) {
  std::vector<std::string> texts = options.texts;
  for (const std::string& file : options.files) texts.push_back(read_text(file));
  if (texts.empty()) texts.push_back(read_text("-"));
  return texts;
}

void tokenize(const TokenizeOptions& options) {
  const Tokenizer tokenizer = Tokenizer::load(options.path);
  std::string output;
  const std::vector<std::string> texts = texts_to_tokenize(options);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Encoding encoding = tokenizer.encode(texts[i], {.special_tokens = !options.plain});
    if (options.json) {
      output +=
          json_of_tokens(tokenizer, encoding).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n";
    } else if (options.ids) {
      output += fmt::format("{}\n", fmt::join(encoding.ids, " "));
    } else {
      if (i > 0) output += "\n";
      output += table_of_tokens(tokenizer, encoding);
    }
  }
  write_text(options.output, output);
}

}  // namespace

void add_tokenize(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Print the tokens of texts: ids, text ranges, tokens");
  command->add_option("DIR", options->path, "Model directory, or tokenizer.json")->required();
  command->add_option("TEXT", options->texts, "Texts to tokenize (default: standard input, as one text)");
  command->add_option("-f,--file", options->files, "File to tokenize as one text; - is standard input (repeatable)")
      ->allow_extra_args(false);
  command->add_option("-o,--output", options->output, "Output file; - is standard output")->capture_default_str();
  command->add_flag("--plain", options->plain, "Leave out the special tokens that the tokenizer adds");
  CLI::Option* ids = command->add_flag("--ids", options->ids, "Print only the ids, one line per text");
  command->add_flag("--json", options->json, "Print a JSON object per text: ids, tokens, offsets")->excludes(ids);
  command->footer(
      "Ranges count code points of the text. A token that the tokenizer adds, such as <s>, has none.\n"
      "Examples:\n"
      "  lathe tokenize Llama-3.2-1B \"Hello world\"\n"
      "  lathe tokenize tokenizer.json -f book.txt --ids");
  command->callback([options] { tokenize(*options); });
}

}  // namespace lathe::tools
