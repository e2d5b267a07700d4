#pragma once

#include <string>

#include "models/import/op_call.h"

namespace lathe::importing {

/// Records that a size must be at least a number in each run [import_range]. The message is that of the error.
void require_at_least(const OpCall& call, std::int64_t least, const Dim& size, std::string message);

}  // namespace lathe::importing
