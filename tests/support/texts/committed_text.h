#pragma once

#include <string>

namespace lathe::test {

/// Checks that a file of the source tree, such as "docs/ops.md", equals `current`. If not, writes the correct text to
/// a file of its name in the working directory.
void check_committed(const std::string& path, const std::string& current);

}  // namespace lathe::test
