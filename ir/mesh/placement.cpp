#include "ir/mesh/placement.h"

#include <fmt/core.h>

namespace lathe::shard {

std::string_view name(Combine combine) {
  switch (combine) {
    case Combine::sum: return "sum";
    case Combine::max: return "max";
    case Combine::min: return "min";
  }
  return "";
}

namespace {

std::string describe(const AxisPlacement& placement) {
  if (const auto* split = std::get_if<SplitDim>(&placement))
    return fmt::format("dim {}{}", split->dim,
                       split->outer.is(1) ? "" : fmt::format(" in {} blocks", split->outer.to_string()));
  if (const auto* partial = std::get_if<Partial>(&placement))
    return fmt::format("partial {}", name(partial->combine));
  return "";
}

}  // namespace

std::string to_string(const Placement& placement, const Mesh& mesh) {
  std::string text;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (const std::string part = describe(placement[a]); !part.empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", mesh[a].name, part);
  return text.empty() ? "whole" : text;
}

}  // namespace lathe::shard
