#pragma once

#include <filesystem>

namespace lathe::test {

/// The folder of compiled code that all programs of a build share, tests, examples and the command that tests run;
/// beside this program where it lies in no build.
inline std::filesystem::path kernel_folder() {
  namespace fs = std::filesystem;
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path();
  for (fs::path at = beside; at.has_relative_path(); at = at.parent_path())
    if (fs::exists(at / "CMakeCache.txt")) return at / "tests" / "kernels";
  return beside / "kernels";
}

}  // namespace lathe::test
