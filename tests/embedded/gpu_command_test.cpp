#include <algorithm>

#include "tests/embedded/shell.h"
#include "tests/support/texts/test_data.h"

/// `lathe compile` for GPUs, with a mock of NVRTC. tests/gpu_library runs the libraries.
using namespace lathe::test;

namespace {

Ran run_with_mock(const Scratch& scratch, const std::string& arguments) {
  return run_shell(scratch, "CUDA_HOME='" LATHE_MOCK_CUDA "' LATHE_CACHE_DIR='" + scratch.cache() +
                                "' '" LATHE_BINARY "' " + arguments);
}

/// Returns the declaration of lathe_cuda in a header, without spaces.
std::string declaration(const std::string& header) {
  const std::string start = "#ifndef LATHE_CUDA\n";
  const std::size_t begin = header.find(start);
  REQUIRE(begin != std::string::npos);
  std::string text = header.substr(begin, header.find("#endif", begin) - begin);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

}  // namespace

TEST_CASE("embedded: lathe compile writes a library for GPUs", "[embedded]") {
  if (std::system("c++ --version > /dev/null 2>&1") != 0) {
    WARN("SKIP: kernels of mock GPUs want a C++ compiler named c++");
    return;
  }
  const Scratch scratch;
  scratch.write("small.lathe", small_program);
  const Ran made = run_with_mock(scratch,
                                 "compile small.lathe --target sm_80,cuda:sm_90a --prefix small --max n=4 "
                                 "--emit=archive,header,object,source-list,helpers -o out");
  INFO(made.out << made.err);
  REQUIRE(made.status == 0);
  for (const char* const file :
       {"libsmall.a", "small.h", "small.o", "small_sm_80.o", "small_sm_90a.o", "small.sources.txt", "lathe_cuda.h"})
    CHECK(made.out.find(file) != std::string::npos);
  CHECK(declaration(scratch.read("out/small.h")) == declaration(scratch.read("out/lathe_cuda.h")));
  // With a prefix, the default is a library.
  CHECK(run_with_mock(scratch, "compile small.lathe --target sm_90a --prefix small --max n=4 -o again").status == 0);
  CHECK(std::filesystem::exists(scratch.path("again/libsmall.a")));
  CHECK_THAT(run_with_mock(scratch, "compile small.lathe --target sm_90a,x86-64-v3 --prefix small --max n=4").err,
             Catch::Contains("different kinds"));
  CHECK_THAT(run_with_mock(scratch, "compile small.lathe --target cuda --prefix small --max n=4").err,
             Catch::Contains("exact architecture"));
}

TEST_CASE("embedded: lathe dump prints the driver for a GPU, without NVRTC", "[embedded]") {
  const Scratch scratch;
  scratch.write("small.lathe", small_program);
  const std::string text = lathe_output(scratch, "dump small.lathe --after driver --target cuda:sm_90a --dim n=4");
  CHECK_THAT(text, Catch::Contains("_on_sm_90a(ptr %library, ptr %call)") && Catch::Contains("_launch0_") &&
                       Catch::Contains("%stream"));
}
