#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/c_api/support.h"

/// The header and the shared library.
using namespace lathe::test;

namespace {

std::string header() {
  std::ifstream file(source_path("include/lathe/lathe_c.h"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the names of the functions that the header declares.
std::set<std::string> declared() {
  const std::string text = header();
  const std::regex declaration(R"(LATHE_C_API [a-z_0-9 ]*[ *]+(lathe_\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

/// Compiles a program that includes the header. Returns whether that succeeds without a warning.
bool compiles_header(const std::string& compiler, const std::string& body, const std::string& output = "") {
  const std::string command = compiler + " -Wall -Wextra -Werror -pedantic -fsyntax-only -I '" +
                              source_path("include").string() + "' - " + output;
  std::FILE* pipe = popen(command.c_str(), "w");
  if (!pipe) return false;
  const std::string program = "#include <lathe/lathe_c.h>\n" + body + "\n";
  std::fwrite(program.data(), 1, program.size(), pipe);
  return pclose(pipe) == 0;
}

bool has_command(const std::string& name) {
  int status = -1;
  output_of_command("command -v " + name + " 2>/dev/null", status);
  return status == 0;
}

}  // namespace

TEST_CASE("c api: the header compiles as C99 and as C++17 by all compilers") {
  const std::string uses =
      "int main(void) { lathe_array a = {sizeof(lathe_array), 0, 0, 0, 0, 0}; return (int)a.rank + "
      "(lathe_c_abi_version() != LATHE_C_ABI_VERSION); }";
  const std::string own_c = std::string("'") + LATHE_CC + "'", own_cxx = std::string("'") + LATHE_CXX + "'";
  std::vector<std::string> compilers{own_c + " -std=c99 -x c", own_c + " -std=c11 -x c",
                                     own_cxx + " -std=c++17 -x c++", own_cxx + " -std=c++20 -x c++"};
  for (const std::string other : {"gcc", "clang-19", "clang"}) {
    if (!has_command(other)) continue;
    compilers.push_back(other + " -std=c99 -x c");
    compilers.push_back(other + " -std=c++17 -x c++");
  }
  for (const std::string& compiler : compilers) {
    INFO(compiler);
    CHECK(compiles_header(compiler, uses));
    CHECK_FALSE(compiles_header(compiler, uses + " int x = lathe_unknown();", "2>/dev/null"));
  }
  // The struct of DLPack's own header is the same type.
  CHECK(compiles_header(own_c + " -std=c99 -x c",
                        "typedef struct DLManagedTensor { void* data; } DLManagedTensor;\n"
                        "lathe_status f(lathe_call* c, DLManagedTensor* t);\n"
                        "lathe_status f(lathe_call* c, DLManagedTensor* t) { return lathe_call_set_input_dlpack(c, "
                        "\"x\", t); }"));
}

TEST_CASE("c api: the header includes only stddef.h and stdint.h") {
  std::istringstream lines(header());
  std::set<std::string> included;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#include ")) included.insert(line.substr(9));
  CHECK(included == std::set<std::string>{"<stddef.h>", "<stdint.h>"});
}

TEST_CASE("c api: the library exports the functions of the header, and nothing else") {
  int status = -1;
  std::istringstream lines(output_of_command(std::string("nm -D --defined-only '") + LATHE_C_LIBRARY + "'", status));
  REQUIRE(status == 0);
  std::set<std::string> exported;
  for (std::string address, kind, name; lines >> address >> kind >> name;) exported.insert(name);
  CHECK(declared().size() > 50);
  CHECK(exported == declared());
}

TEST_CASE("c api: versions") {
  CHECK(lathe_c_abi_version() == LATHE_C_ABI_VERSION);
  CHECK(std::regex_match(lathe_version(), std::regex(R"(\d+\.\d+\.\d+)")));
}
