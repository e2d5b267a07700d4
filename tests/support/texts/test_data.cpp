#include "tests/support/texts/test_data.h"

namespace lathe::test {

std::filesystem::path test_data(std::string_view path) { return source_path("tests") / path; }
std::filesystem::path source_path(std::string_view path) { return std::filesystem::path(LATHE_SOURCE_ROOT) / path; }

}  // namespace lathe::test
