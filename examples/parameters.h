#pragma once

#include "runtime/executable.h"

namespace lathe::examples {

/// Gives `to` every parameter and state that it shares with a training step; the optimizer's states stay behind.
inline void take_parameters(Executable& to, const ir::Tensors& from) {
  for (const auto& slot : to.program().states)
    if (const auto at = from.find(slot.name); at != from.end()) to.set_state(slot.name, at->second);
}

}  // namespace lathe::examples
