#pragma once

#include <string>

namespace lathe::test {

/// Whether the compiler of this build accepts `program`, a file that sees the public headers of this tree as
/// <lathe/...>. Its messages go to standard error.
bool compiles(const std::string& program);

}  // namespace lathe::test
