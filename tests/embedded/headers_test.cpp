#include "tests/embedded/shell.h"
#include "tests/support/texts/test_data.h"

/// The headers of include/lathe/aot must compile alone, in C and C++.
using namespace lathe::test;

TEST_CASE("embedded: each helper header compiles alone in strict C99, C17 and C++17", "[embedded]") {
  const Scratch scratch;
  const std::string folder = source_path("include/lathe/aot").string(), warnings = " -Wall -Wextra -Werror -pedantic";
  std::string compilers = "cc";
  for (const std::string compiler : {"gcc", "clang"})
    if (run_shell(scratch, "command -v " + compiler).status == 0) compilers += " " + compiler;
  int headers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    scratch.write("alone.c", "#include \"" + name + "\"\n");
    const std::string rest = warnings + " -I'" + folder + "' -fsyntax-only ";
    if (name.ends_with(".h"))
      for (const char* const standard : {"c99", "c99 -D_DEFAULT_SOURCE", "gnu99", "c17", "gnu17 -D_GNU_SOURCE"})
        shell(scratch, "for c in " + compilers + "; do $c -std=" + standard + rest + "alone.c || exit 1; done");
    for (const char* const standard : {"c++17 -Wconversion -Wshadow", "c++20"})
      shell(scratch, std::string("'" LATHE_CXX_COMPILER "' -x c++ -std=") + standard + rest + "alone.c");
    ++headers;
  }
  CHECK(headers == 5);
}

TEST_CASE("embedded: lathe compile writes the helper headers as they are", "[embedded]") {
  const Scratch scratch;
  scratch.write("small.lathe", small_program);
  lathe_output(scratch, "compile small.lathe --prefix small --max n=4 --emit=helpers,header -o out");
  int headers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("include/lathe/aot"))) {
    const std::string name = entry.path().filename().string();
    shell(scratch, "cmp '" + entry.path().string() + "' out/" + name);
    ++headers;
  }
  CHECK(headers == 5);
  CHECK_FALSE(std::filesystem::exists(scratch.path("out/libsmall.a")));
  // A program may include a library's header before or after the pool's: both declare lathe_workers.
  const std::string workers = "#ifndef LATHE_WORKERS\n";
  const auto declaration = [&](const std::string& text) {
    const std::size_t begin = text.find(workers);
    REQUIRE(begin != std::string::npos);
    return text.substr(begin, text.find("#endif", begin) - begin);
  };
  const auto without_spaces = [](std::string text) {
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  };
  CHECK(without_spaces(declaration(scratch.read("out/small.h"))) ==
        without_spaces(declaration(scratch.read("out/lathe_pool.h"))));
}

TEST_CASE("embedded: the header of a library compiles after the headers of C, whatever the names of its tensors",
          "[embedded]") {
  const Scratch scratch;
  scratch.write("odd.lathe",
                R"(graph @odd(input %"int": f32[NULL, x.y], input %"a.b": f32[x.y], input %"a_b": f32[x.y],
    input %errno: f32[x.y], input %I: f32[x.y], input %SIZE_MAX: f32[x.y], input %"*/ \"q\" //": f32[x.y],
    input %workspace: f32[x.y], state %states: f32[x.y], parameter %"_Bool": f32[x.y]) {
  %1 = add %"int", %"a.b"
  %2 = add %1, %"a_b"
  %3 = add %2, %errno
  %4 = add %3, %I
  %5 = add %4, %SIZE_MAX
  %6 = add %5, %"*/ \"q\" //"
  %7 = add %6, %workspace
  %8 = add %7, %states
  %9 = mul %8, %"_Bool"
  %10 = sum %9 {dims=[0]}
  output "return" %9
  output "EOF" %1
  update %states <- %10
}
)");
  lathe_output(scratch, "compile odd.lathe --prefix odd --max NULL=3,x.y=4 --emit=archive,header -o out");
  std::string program;
  for (const std::string header :
       {"complex.h", "errno.h", "limits.h", "math.h", "stdbool.h", "stdint.h", "stdio.h", "odd.h"})
    program += "#include <" + header + ">\n";
  scratch.write("odd.c", program +
                             "int main(void) {\n"
                             "  odd library;\n"
                             "  return odd_init(&library, NULL, NULL, 0) == 0 && puts(odd_describe()) >= 0 ? 0 : 1;\n"
                             "}\n");
  shell(scratch, "cc " + strict_c + " -Iout odd.c out/libodd.a -lm -o odd && ./odd");
  shell(scratch,
        "'" LATHE_CXX_COMPILER "' -x c++ -std=c++17 -Wall -Wextra -Werror -pedantic -fsyntax-only out/odd.h");
}

TEST_CASE("embedded: loops of the pool have no data races", "[embedded]") {
  const Scratch scratch;
  const std::string include = "-I'" + source_path("include/lathe/aot").string() + "' '";
  const std::string source = source_path("tests/embedded/pool_stress.c").string() + "'";
  scratch.write("empty.c", "int main(void) { return 0; }\n");
  const bool has_tool = run_shell(scratch, "cc -fsanitize=thread empty.c -o empty && ./empty").status == 0;
  if (!has_tool) std::printf("SKIP: the C compiler has no ThreadSanitizer\n");
  const std::string tool = has_tool ? " -fsanitize=thread " : " ";
  shell(scratch, "cc -O1 -g -pthread" + tool + include + source + " -o stress");
  CHECK(shell(scratch, "./stress") == "equal\n");
}
