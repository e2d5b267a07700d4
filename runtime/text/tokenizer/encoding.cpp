#include "runtime/text/tokenizer/encoding.h"

#include <algorithm>

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

}  // namespace

void pad(std::span<Encoding> encodings, const Padding& padding) {
  std::size_t length = padding.length.value_or(0);
  if (!padding.length)
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.size());
  const std::size_t multiple = padding.multiple_of.value_or(0);
  if (multiple > 0) length = (length + multiple - 1) / multiple * multiple;
  for (Encoding& encoding : encodings) pad_to(encoding, length, padding);
}

}  // namespace lathe
