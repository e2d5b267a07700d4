#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "models/text/chat/chat_template.h"
#include "models/text/dataset/example.h"
#include "models/text/tokenizer/tokenizer.h"

namespace lathe {

/// Options for converting lines to tokens.
struct ExampleOptions {
  /// Token appended to texts and completions, and learned; nullopt appends none.
  std::optional<TokenId> end = {};
  /// Template for conversations. If it is null, conversations are errors.
  const ChatTemplate* chat = nullptr;
};

/// Reads examples from JSONL. Each line is a JSON object in one of these forms:
///
///   {"text": "..."}                        every token is learned
///   {"prompt": "...", "completion": "..."} the tokens of the completion are learned
///   {"messages": [...], "tools": [...]}    a conversation: the assistant's text is learned; tools are optional
///
/// Ignores other keys and blank lines. Throws UserErrors with file and line: [dataset_line] for other objects,
/// [json], [dataset_empty] for a file without examples, [chat_template] for a conversation without a template; and
/// those of render_with_spans() and Tokenizer::encode().
std::vector<Example> read_examples(const std::filesystem::path& file, const Tokenizer& tokenizer,
                                   const ExampleOptions& options);

/// Parses examples from text. `name` is used in messages.
std::vector<Example> parse_examples(std::string_view jsonl, std::string_view name, const Tokenizer& tokenizer,
                                    const ExampleOptions& options);

}  // namespace lathe
