#include "models/text/tokenizer/encoding.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"

namespace lathe {

namespace {

void pad_to(Encoding& encoding, std::size_t length, const Padding& padding) {
  for (Encoding& part : encoding.overflow) pad_to(part, length, padding);
  if (encoding.size() >= length) return;
  const std::size_t count = length - encoding.size();
  const auto fill = [&](auto& list, auto value) {
    list.insert(padding.side == Side::left ? list.begin() : list.end(), count, value);
  };
  fill(encoding.offsets, TextRange{});
  fill(encoding.words, -1);
  fill(encoding.ids, padding.id);
  fill(encoding.type_ids, padding.type_id);
  fill(encoding.special_mask, std::uint8_t{1});
  fill(encoding.attention_mask, std::uint8_t{0});
}

[[noreturn]] void fail_padding(std::size_t length) {
  throw UserError(fmt::format("padding to {} tokens, more than {}", length, longest_padding), "tokenizer_limit",
                  "give a shorter length, or another multiple");
}

}  // namespace

void pad(std::span<Encoding> encodings, const Padding& padding) {
  std::size_t length = padding.length.value_or(0);
  if (!padding.length)
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.size());
  const std::size_t multiple = padding.multiple_of.value_or(0);
  if (multiple > longest_padding || length > longest_padding) fail_padding(std::max(length, multiple));
  if (multiple > 0) length = (length + multiple - 1) / multiple * multiple;
  if (length > longest_padding) fail_padding(length);
  for (Encoding& encoding : encodings) pad_to(encoding, length, padding);
}

}  // namespace lathe
