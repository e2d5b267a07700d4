#include "models/import/unsupported_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"

namespace lathe::importing {

void UnsupportedParts::report(std::string_view file, std::string_view advice) const {
  if (nodes_.empty()) return;
  const std::string text = fmt::format("{} has {} that Lathe does not import", file,
                                       nodes_.size() == 1 ? "a part" : fmt::format("{} parts", nodes_.size()));
  std::string list;
  for (const auto& [part, nodes] : nodes_) {
    constexpr std::size_t most = 3;
    list += (list.empty() ? "" : "\n  ") + part + ": ";
    for (std::size_t i = 0; i < std::min(most, nodes.size()); ++i) list += (i == 0 ? "" : ", ") + nodes[i];
    if (nodes.size() > most) list += fmt::format(" and {} more", nodes.size() - most);
  }
  if (!advice.empty()) list += fmt::format("\n  {}", advice);
  throw UserError(text, "import_unsupported", list);
}

}  // namespace lathe::importing
