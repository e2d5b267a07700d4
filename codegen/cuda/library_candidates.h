#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lathe::cuda {

/// Where a library that comes with CUDA may lie, by the names that it may have, in order: in these folders, and in
/// lib64 and lib of them; where the dynamic linker looks; in /usr/local/cuda.
std::vector<std::string> library_candidates(std::span<const char* const> names,
                                            const std::vector<std::filesystem::path>& folders);

}  // namespace lathe::cuda
