#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// What `lathe` takes from its environment. No other part of Lathe reads it.
namespace lathe::tools {

/// Where compiled code is kept: $LATHE_CACHE_DIR, else $XDG_CACHE_HOME/lathe, else ~/.cache/lathe. Empty, which turns
/// the cache off, where LATHE_CACHE_DIR is set and empty, or where there is no home.
std::filesystem::path cache_folder();

/// Where CUDA lies: $CUDA_HOME and $CUDA_PATH, where they are set.
std::vector<std::filesystem::path> cuda_folders();

/// "rank 1 of 2": this process among those that an mpirun or srun has started, before any of them has spoken to
/// another. Empty where it is alone.
std::string place_among_processes();

}  // namespace lathe::tools
