#pragma once

#include <filesystem>

/// What `lathe` takes from its environment. No other part of Lathe reads it.
namespace lathe::tools {

/// Where compiled code is kept: $LATHE_CACHE_DIR, else $XDG_CACHE_HOME/lathe, else ~/.cache/lathe. Empty, which turns
/// the cache off, where LATHE_CACHE_DIR is set and empty, or where there is no home.
std::filesystem::path cache_folder();

}  // namespace lathe::tools
