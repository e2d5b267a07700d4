#pragma once

#include <filesystem>

namespace lathe::test {

/// Returns the folder of compiled code that all programs of a build share: tests, examples and the command run by
/// tests. For a program outside of a build, it is next to the program.
inline std::filesystem::path kernel_folder() {
  namespace fs = std::filesystem;
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path();
  for (fs::path at = beside; at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "CMakeCache.txt")) return at / "tests" / "kernels";
  return beside / "kernels";
}

}  // namespace lathe::test
