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

}  // namespace lathe::tools
