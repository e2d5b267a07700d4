#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// The environment variables that `lathe` uses. No other part of Lathe reads the environment.
namespace lathe::tools {

/// Returns the folder of compiled code: $LATHE_CACHE_DIR, else $XDG_CACHE_HOME/lathe, else ~/.cache/lathe. Returns an
/// empty path, which disables the cache, if LATHE_CACHE_DIR is set to an empty string or if there is no home
/// directory.
std::filesystem::path cache_folder();

/// Returns the folders in which to search for CUDA: $CUDA_HOME and $CUDA_PATH, if set.
std::vector<std::filesystem::path> cuda_folders();

/// Returns "rank 1 of 2" for a process started by mpirun or srun, without communicating. Returns "" for a single
/// process.
std::string place_among_processes();

}  // namespace lathe::tools
