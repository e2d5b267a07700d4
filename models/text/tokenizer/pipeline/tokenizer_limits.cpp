#include "models/text/tokenizer/pipeline/tokenizer_limits.h"

#include <algorithm>
#include <array>

namespace lathe::text {

namespace {

constexpr std::array<std::string_view, 2> sides{"Left", "Right"};

}  // namespace

Truncation read_truncation(const JsonNode& place) {
  static constexpr std::array<std::string_view, 3> strategies{"LongestFirst", "OnlyFirst", "OnlySecond"};
  const Fields fields(place, {"direction", "max_length", "strategy", "stride"});
  Truncation read;
  read.max_length = static_cast<std::size_t>(fields.get("max_length").count(INT64_MAX));
  read.strategy = static_cast<Truncation::Strategy>(fields.get("strategy").choice(strategies));
  read.stride = static_cast<std::size_t>(fields.get("stride").count(INT64_MAX));
  if (const auto side = fields.find("direction")) read.side = static_cast<Side>(side->choice(sides));
  return read;
}

Padding read_padding(const JsonNode& place) {
  static constexpr std::array<std::string_view, 1> strategies{"BatchLongest"};
  const Fields fields(place, {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  Padding read;
  const JsonNode strategy = fields.get("strategy");
  if (strategy.is_object()) {
    read.length = static_cast<std::size_t>(Fields(strategy, {"Fixed"}).get("Fixed").count(longest_padding));
  } else {
    strategy.choice(strategies);
  }
  read.side = static_cast<Side>(fields.get("direction").choice(sides));
  if (const auto multiple = fields.find("pad_to_multiple_of"))
    read.multiple_of = static_cast<std::size_t>(multiple->count(longest_padding));
  read.id = static_cast<TokenId>(fields.get("pad_id").count());
  read.type_id = static_cast<std::int32_t>(fields.get("pad_type_id").count());
  fields.get("pad_token").string();
  return read;
}

}  // namespace lathe::text
