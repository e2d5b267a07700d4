#pragma once

#include "passes/program/program.h"

namespace lathe {

/// The elements of `received` of a part that is folded, among so many processes: pieces of all, whole, or two windows
/// of each where a piece has more than one, or may have, for all that is known.
inline Dim received_elements(const Exchange::Part& part, std::int64_t ranks) {
  if (part.window == 0) return part.elements.unnamed() + Dim(ranks - 1);
  const std::optional<std::int64_t> elements = part.elements.value();
  const std::int64_t piece = elements ? (*elements + ranks - 1) / ranks : 2 * part.window;
  return ranks * (piece <= part.window ? piece : 2 * part.window);
}

}  // namespace lathe
