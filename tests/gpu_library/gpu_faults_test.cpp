#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "runtime/target.h"
#include "tests/gpu_library/library_case.h"
#include "tests/gpu_library/mock_machine.h"

/// Mistakes with libraries for GPUs: when they are compiled, and when programs use them.
using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

ir::Graph lookup() {
  return ir::parse_graph(R"(graph @lookup(input %ids: i64[n], input %table: f32[64], state %count: i64[]) {
  %y = gather %table, %ids {dim=0}
  %one = constant {dtype=i64, shape=[], values=[1]}
  %next = add %count, %one
  output "y" %y
  update %count <- %next
})",
                         "lookup.lathe");
}

std::string error_of(const ir::Graph& graph, const LibraryOptions& options) {
  try {
    emit_library(std::vector<LibraryGraph>{{"", graph}}, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("gpu library: each mistake of a program has its error") {
  if (!has_mock_compiler()) return;
  GpuLibrary library(lookup(), GpuLibrary::options({{"n", 4}}));
  CHECK(library.run_program("faults.c") ==
        R"(a pointer to the library, to a call or to dims is null
the pointer to the functions of the CUDA driver is null
the CUDA driver returned CUDA_ERROR_INVALID_IMAGE
the library is not initialised: call g_init first
the dim n must be from 0 to 4
no error
a pointer to the library, to a call or to dims is null
the pointer to the states is null
no error
the library is not initialised: call g_init first
a pointer to the library, to a call or to dims is null
a pointer to the library, to a call or to dims is null
the dim n must be from 0 to 4
the input ids: i64[n] is null
the input table: f32[64] must be aligned to 16 bytes
the output y: f32[n] overlaps with other memory of the call
the pointer to the states is null
the pointer to the workspace is null
the workspace is too small: ask g_workspace_bytes
no error
no error
lookup.lathe:2: %3 gather y: an index is not in [0, 64)
the CUDA driver returned an error: cuda.h has its name by its number, which is this one without the minus
the library has no error with this number
no error
the library is not initialised: call g_init first
)");
}

TEST_CASE("gpu library: init takes the last architecture that the GPU supports, and fails without one") {
  if (!has_mock_compiler()) return;
  const char* const program = "levels.c";
  LibraryOptions options = GpuLibrary::options({{"n", 4}});
  const auto says = [&](std::vector<std::string> targets) {
    options.targets = std::move(targets);
    return GpuLibrary(lookup(), options).run_program(program);
  };
  CHECK(says({"cuda:sm_80", "cuda:sm_90", "cuda:sm_90a"}) == "level 2: no error\n");
  CHECK(says({"cuda:sm_80", "cuda:sm_90"}) == "level 1: no error\n");
  CHECK(says({"cuda:sm_80"}) ==
        "the GPU of the current context supports none of the architectures that g was compiled for\n");
}

TEST_CASE("gpu library: what it cannot do is refused when it is compiled") {
  const LibraryOptions good = GpuLibrary::options({{"n", 4}});
  const auto changed = [&](auto change) {
    LibraryOptions options = good;
    change(options);
    return error_of(lookup(), options);
  };
  using O = LibraryOptions;
  CHECK_THAT(changed([](O& o) { o.targets = {"cuda"}; }),
             Contains("[library_target]") && Contains("exact architecture"));
  CHECK_THAT(changed([](O& o) { o.targets = {"cuda:sm_90a", "x86-64-v3"}; }), Contains("different kinds"));
  CHECK_THAT(changed([](O& o) { o.targets = {"cuda:sm_70"}; }), Contains("[unknown_arch]"));
  CHECK_THAT(changed([](O& o) { o.most = {{"n", std::int64_t{1} << 45}}; }), Contains("[grid_size]"));
}

TEST_CASE("gpu library: the same graph gives the same bytes, and needs no functions but those of C") {
  if (!has_mock_compiler()) return;
  const LibraryOptions options = GpuLibrary::options({{"n", 4}});
  GpuLibrary first(lookup(), options), second(lookup(), options);
  CHECK(first.files().archive.bytes == second.files().archive.bytes);
  CHECK(first.files().header.bytes == second.files().header.bytes);
  const ShellRun symbols =
      run_on_mock(first.folder(), "nm -u libg.a | sed -n 's/^ *U //p' | grep -v '^g_' | sort -u | xargs");
  INFO(symbols.output);
  CHECK((symbols.output == "\n" || symbols.output == "memcpy\n" || symbols.output == "memset\n"));
  CHECK(run_on_mock(first.folder(), "nm libg.a | grep -i ' [bd] ' | wc -l").output == "0\n");  // no global variables
}

TEST_CASE("gpu library: the header compiles in C and C++") {
  if (!has_mock_compiler()) return;
  GpuLibrary library(lookup(), GpuLibrary::options({{"n", 4}}));
  spit(library.folder() / "alone.c", "#include \"g.h\"\n#include \"lathe_cuda.h\"\n");
  spit(library.folder() / "other.c", "#include \"lathe_cuda.h\"\n#include \"g.h\"\n");
  const std::string rest = " -Wall -Wextra -Werror -pedantic -I. -I'" + helper_folder() + "' -fsyntax-only ";
  const ShellRun compiled =
      run_on_mock(library.folder(),
                  "for c in gcc clang; do command -v $c > /dev/null || continue; for f in alone.c other.c; do $c "
                  "-std=c99" +
                      rest + "$f && $c -x c++ -std=c++17 -Wconversion" + rest + "$f || exit 1; done; done");
  INFO(compiled.output);
  CHECK(compiled.status == 0);
}

TEST_CASE("gpu library: joined launches need a GPU with cooperative launches, and room for a block") {
  if (!has_mock_compiler()) return;
  std::string text = "graph @chain(input %x: f32[1, 64]";
  for (int i = 0; i < 4; ++i) text += ", input %w" + std::to_string(i) + ": f32[64, 64]";
  text += ") {\n";
  for (int i = 0; i < 4; ++i)
    text += "  %" + std::to_string(i + 1) + " = matmul %" + (i == 0 ? "x" : std::to_string(i)) + ", %w" +
            std::to_string(i) + "\n";
  GpuLibrary library(ir::parse_graph(text + "  output \"y\" %4\n}", "chain.lathe"), GpuLibrary::options({}));
  CHECK(library.run_program("cooperation.c") ==
        R"(the GPU cannot run joined launches, which are cooperative: compile the library with --no-joined-launches
the GPU cannot run joined launches, which are cooperative: compile the library with --no-joined-launches
no error
no error
)");
}
