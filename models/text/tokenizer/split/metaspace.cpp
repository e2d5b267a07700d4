#include "models/text/tokenizer/split/metaspace.h"

#include <array>

namespace lathe::text {

Metaspace::Metaspace(const JsonNode& place) {
  static constexpr std::array<std::string_view, 3> schemes{"first", "never", "always"};
  const Fields fields(place, {"replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  replacement = fields.get("replacement").character();
  splits = fields.boolean_or("split", true);
  const auto named = fields.find("prepend_scheme");
  if (named) scheme = static_cast<Scheme>(named->choice(schemes));
  if (fields.boolean_or("add_prefix_space", true)) return;
  if (named && scheme != Scheme::never) place.fail("'add_prefix_space' and 'prepend_scheme' contradict each other");
  scheme = Scheme::never;
}

}  // namespace lathe::text
