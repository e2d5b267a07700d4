#include "tests/support/texts/committed_text.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/texts/test_data.h"

namespace lathe::test {

void check_committed(const std::string& path, const std::string& current) {
  std::ifstream in(source_path(path));
  std::stringstream committed;
  committed << in.rdbuf();
  const std::string name = std::filesystem::path(path).filename();
  if (committed.str() != current) std::ofstream(name) << current;
  INFO("the current text has been written to " << name << " in the working directory: it belongs to " << path);
  CHECK((committed.str() == current));  // in parentheses: otherwise both texts would be printed in full
}

}  // namespace lathe::test
