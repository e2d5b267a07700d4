#include "runtime/backend/backend.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe {

EmittedLibrary Backend::emit(const LibraryPlan& plan) const {
  throw UserError(fmt::format("a library cannot be compiled for {} ({})", kind(), plan.targets.at(0)),
                  "library_target", "give CPU levels, such as x86-64-v3");
}

}  // namespace lathe
