#include "tools/environment.h"

#include <cstdlib>

namespace lathe::tools {

std::filesystem::path cache_folder() {
  if (const char* own = std::getenv("LATHE_CACHE_DIR")) return own;
  // An environment variable that is no absolute path counts as unset (XDG Base Directory Specification).
  if (const char* shared = std::getenv("XDG_CACHE_HOME"); shared && *shared == '/')
    return std::filesystem::path(shared) / "lathe";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return std::filesystem::path(home) / ".cache" / "lathe";
  return {};
}

std::vector<std::filesystem::path> cuda_folders() {
  std::vector<std::filesystem::path> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(name); folder && *folder) folders.emplace_back(folder);
  return folders;
}

}  // namespace lathe::tools
