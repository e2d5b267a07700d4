#pragma once

#include <string>

namespace lathe::test {

/// Whether this build's compiler accepts `program`, which can include the public headers of this tree as <lathe/...>.
/// Prints its messages to stderr.
bool compiles(const std::string& program);

}  // namespace lathe::test
