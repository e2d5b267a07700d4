#include "codegen/cuda/library_candidates.h"

namespace lathe::cuda {

std::vector<std::string> library_candidates(std::span<const char* const> names,
                                            const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> found;
  const auto add = [&](const std::filesystem::path& folder) {
    for (const char* name : names) found.push_back((folder / name).string());
  };
  for (const auto& folder : folders)
    for (const char* inside : {"", "lib64", "lib"}) add(folder / inside);
  for (const char* name : names) found.emplace_back(name);
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"}) add(folder);
  return found;
}

}  // namespace lathe::cuda
