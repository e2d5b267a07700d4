#include "models/text/tokenizer/split/pattern.h"

namespace lathe::text {

Pattern::Pattern(const JsonNode& place) {
  const Fields fields(place, {"String", "Regex"});
  if (const auto literal = fields.find("String")) {
    text_ = literal->string();
    if (text_.empty()) regex_.emplace("");
    return;
  }
  const JsonNode expression = fields.get("Regex");
  place_ = expression.path();
  at_place(expression, [&] { regex_.emplace(expression.string()); });
}

}  // namespace lathe::text
