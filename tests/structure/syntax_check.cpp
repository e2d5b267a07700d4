#include "tests/structure/syntax_check.h"

#include <cstdio>

#include "tests/support/texts/test_data.h"

namespace lathe::test {

bool compiles(const std::string& program) {
  const std::string root = source_path(".").string();
  const std::string command = std::string("'") + LATHE_CXX_COMPILER + "' -std=c++20 -fsyntax-only -I '" + root +
                              "/include' -I '" + root + "' -x c++ -";
  std::FILE* compiler = popen(command.c_str(), "w");
  if (compiler == nullptr) return false;
  const bool written = std::fwrite(program.data(), 1, program.size(), compiler) == program.size();
  return pclose(compiler) == 0 && written;
}

}  // namespace lathe::test
