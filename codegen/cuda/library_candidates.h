#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace lathe::cuda {

/// Returns the candidate paths of a library that ships with CUDA, in order. For each name: these folders and their
/// lib64 and lib, the dynamic linker's search path, then /usr/local/cuda.
std::vector<std::string> library_candidates(std::span<const char* const> names,
                                            const std::vector<std::filesystem::path>& folders);

}  // namespace lathe::cuda
