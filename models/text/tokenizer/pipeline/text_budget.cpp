#include "models/text/tokenizer/pipeline/text_budget.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::text {

namespace {

constexpr std::size_t least_written = std::size_t{16} << 20, written_per_byte = 64;
constexpr std::uint64_t least_matching = 1'000'000, matching_per_byte = 200;

}  // namespace

TextBudget::TextBudget(std::size_t bytes)
    : bytes_(bytes),
      writable_(least_written + written_per_byte * bytes),
      matching_(least_matching + matching_per_byte * bytes) {}

void TextBudget::write(std::size_t bytes, std::string_view step) {
  if (bytes > writable_) fail(step);
  writable_ -= bytes;
}

void TextBudget::fail(std::string_view step) const {
  throw UserError(fmt::format("{}: the steps up to this one make more than {} bytes of a text of {}", step,
                              least_written + written_per_byte * bytes_, bytes_),
                  "tokenizer_limit", "encode the text in parts, or use a tokenizer with fewer steps");
}

}  // namespace lathe::text
