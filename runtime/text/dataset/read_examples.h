#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/text/chat/chat_template.h"
#include "runtime/text/dataset/example.h"
#include "runtime/text/tokenizer/tokenizer.h"

namespace lathe {

/// How lines become tokens.
struct ExampleOptions {
  /// Follows texts and completions, and is learned; none: they end as they are.
  std::optional<TokenId> end = {};
  /// What writes conversations; null: the model has none, and they are errors.
  const ChatTemplate* chat = nullptr;
};

/// Reads examples from JSONL: on each line a JSON object with one of
///
///   {"text": "..."}                        every token is learned
///   {"prompt": "...", "completion": "..."} the tokens of the completion are learned
///   {"messages": [...], "tools": [...]}    a conversation: what the assistant writes is learned; tools may be absent
///
/// Other keys are passed over, and so are blank lines. UserErrors name file, line and what is wrong: [dataset_line]
/// for other objects, [json], [dataset_empty] for a file without examples, [chat_template] for a conversation where
/// there is no template; those of render_with_spans() and Tokenizer::encode().
std::vector<Example> read_examples(const std::filesystem::path& file, const Tokenizer& tokenizer,
                                   const ExampleOptions& options);

/// The same of text; `name` is for messages.
std::vector<Example> parse_examples(std::string_view jsonl, std::string_view name, const Tokenizer& tokenizer,
                                    const ExampleOptions& options);

}  // namespace lathe
