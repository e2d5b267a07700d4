#include "tools/environment.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace lathe::tools {

std::filesystem::path cache_folder() {
  if (const char* own = std::getenv("LATHE_CACHE_DIR")) return own;
  // Relative paths are treated as unset (XDG Base Directory Specification).
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

std::string place_among_processes() {
  // Variables of Open MPI, MPICH's Hydra and Slurm.
  for (const auto& [rank_name, size_name] : {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                             {"PMI_RANK", "PMI_SIZE"},
                                             {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    const char *rank = std::getenv(rank_name), *size = std::getenv(size_name);
    if (rank && size && *rank && *size)
      return size == std::string_view("1") ? "" : fmt::format("rank {} of {}", rank, size);
  }
  return {};
}

}  // namespace lathe::tools
