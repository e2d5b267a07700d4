#pragma once

#include <filesystem>
#include <string_view>

namespace lathe::test {

/// Returns a file or folder under tests/ in the source tree: test_data("goldens").
std::filesystem::path test_data(std::string_view path);
/// Returns a file or folder of the source tree: source_path("docs/ir.md").
std::filesystem::path source_path(std::string_view path);

}  // namespace lathe::test
