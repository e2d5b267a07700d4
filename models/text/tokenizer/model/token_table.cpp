#include "models/text/tokenizer/model/token_table.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "runtime/files/file_io.h"

namespace lathe::text {

namespace {

constexpr std::string_view vocab_label = "tokenizer_vocab";

}  // namespace

TokenTable::TokenTable(const JsonNode& place) {
  if (!place.is_object()) place.fail(fmt::format("is {}, not an object", place.value().type_name()), vocab_label);
  // Ids may have gaps, but the table must not be much larger than the number of tokens.
  const std::size_t largest = 4 * place.value().size() + 65536;
  for (const auto& [text, id] : place.value().items()) {
    const auto number = id.is_number_unsigned() ? id.get<std::uint64_t>() : largest;
    if (number >= largest)
      place.fail(fmt::format("the id of {} is {}, not a number below {}", quote(text), quote(id.dump()), largest),
                 vocab_label);
    if (number >= texts_.size()) texts_.resize(number + 1);
    Text& entry = texts_[number];
    if (entry.is_known)
      place.fail(fmt::format("{} and {} have the same id {}", quote(entry.text), quote(text), number), vocab_label);
    entry = {text, true};
    by_text_.set(text, static_cast<TokenId>(number));
    ++size_;
  }
}

void TokenTable::push(std::string_view text) {
  by_text_.set(text, end());
  texts_.push_back({std::string(text), true});
  ++size_;
}

std::string_view TokenTable::text(TokenId id) const { return texts_[id].text; }

}  // namespace lathe::text
