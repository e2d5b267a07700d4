#pragma once

#include "passes/program/program.h"

namespace lathe {

/// Returns the number of elements of `received` for a part with a reduction among `ranks` processes: whole chunks of
/// all processes, or two windows per process if a chunk is, or may be, longer than a window.
inline Dim received_elements(const Collective::Part& part, std::int64_t ranks) {
  if (part.window == 0) return part.elements.unnamed() + Dim(ranks - 1);
  const std::optional<std::int64_t> elements = part.elements.value();
  const std::int64_t piece = elements ? (*elements + ranks - 1) / ranks : 2 * part.window;
  return ranks * (piece <= part.window ? piece : 2 * part.window);
}

}  // namespace lathe
