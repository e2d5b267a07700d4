#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "frontend/models/loss_graph.h"
#include "frontend/train/training.h"
#include "runtime/emit_library.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/programs/process.h"
#include "tests/support/texts/test_data.h"

/// Libraries as other people's compilers and linkers see them.
using namespace lathe;
using namespace lathe::test;

namespace {

/// Writes a library of a training step with dropout to a folder.
void write_step(const ScratchFolder& folder, const std::string& prefix, const std::vector<std::string>& targets) {
  const ir::Graph step = training_step(models::loss_graph(small_gpt()).graph, "loss", AdamW{.lr = 1e-3});
  const EmittedLibrary library = emit_library(std::vector<LibraryGraph>{{"", step}},
                                              {.prefix = prefix, .targets = targets, .most = {{"B", 3}, {"T", 16}}});
  spit(folder / library.header.name, library.header.bytes);
  spit(folder / library.archive.name, library.archive.bytes);
}

/// Runs a command of the system in the folder. Its output is in the file "log".
Ending in_folder(const ScratchFolder& folder, const std::string& command) {
  const std::string log = (folder / "log").string();
  Command shell{.words = {"/bin/sh", "-c", command},
                .folder = folder.path(),
                .environment = {},
                .out = log,
                .err = log,
                .limits = {},
                .user = {}};
  return run(shell);
}

bool exists(const ScratchFolder& folder, const std::string& program) {
  return in_folder(folder, "command -v " + program).status == 0;
}

/// Returns the names that `nm` lists with one of the letters of `kinds`.
std::set<std::string> symbols(const ScratchFolder& folder, const std::string& library, const std::string& kinds) {
  REQUIRE(in_folder(folder, "nm " + library).status == 0);
  std::set<std::string> names;
  std::istringstream lines(slurp(folder / "log"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> parts;
    for (std::string word; words >> word;) parts.push_back(word);
    if (parts.size() >= 2 && parts[parts.size() - 2].size() == 1 &&
        kinds.find(parts[parts.size() - 2]) != std::string::npos)
      names.insert(parts.back());
  }
  return names;
}

}  // namespace

TEST_CASE("library: its header compiles as C99 and C++ without warnings", "[library]") {
  const ScratchFolder folder;
  write_step(folder, "gpt", {"x86-64-v3"});
  spit(folder / "t.c", "#include \"gpt.h\"\n#include \"gpt.h\"\nint main(void) { return sizeof(gpt_call) == 0; }\n");
  for (const std::string compiler : {"gcc -std=c99", "clang -std=c99", "clang-19 -std=c99", "g++ -x c++ -std=c++17",
                                     "clang++ -x c++ -std=c++17", "gcc -std=c11"}) {
    if (!exists(folder, compiler.substr(0, compiler.find(' ')))) continue;
    CAPTURE(compiler);
    const Ending ending = in_folder(folder, compiler + " -Wall -Wextra -Werror -pedantic -c t.c -o t.o");
    INFO(slurp(folder / "log"));
    CHECK(ending.status == 0);
  }
}

TEST_CASE("library: it needs the C library's memory and math functions only", "[library]") {
  const ScratchFolder folder;
  write_step(folder, "gpt", {"x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids", "znver4"});
  const std::set<std::string> allowed{"memcpy",
                                      "memset",
                                      "memmove",
                                      "exp",
                                      "log",
                                      "tanh",
                                      "erf",
                                      "sin",
                                      "cos",
                                      "pow",
                                      "fma",
                                      "fmaf",
                                      "fminf",
                                      "fmaxf",
                                      "fmin",
                                      "fmax",
                                      "_GLOBAL_OFFSET_TABLE_"};
  for (const std::string& name : symbols(folder, "libgpt.a", "U")) {
    CAPTURE(name);
    CHECK((allowed.contains(name) || name.starts_with("gpt_")));
  }
  const std::set<std::string> defined = symbols(folder, "libgpt.a", "TDBRVWC");
  CHECK(defined.contains("gpt_run"));
  for (const std::string& name : defined) {
    CAPTURE(name);
    CHECK(name.starts_with("gpt_"));
  }
  CHECK(symbols(folder, "libgpt.a", "BbDd") == std::set<std::string>{});  // no variables
}

TEST_CASE("library: a program does not link with a library of another interface", "[library]") {
  const ScratchFolder folder;
  const auto emit = [](std::int64_t most) {
    const ir::Graph graph = models::loss_graph(small_gpt()).graph;
    return emit_library(std::vector<LibraryGraph>{{"", graph}}, {.prefix = "gpt", .most = {{"B", most}, {"T", 4}}});
  };
  spit(folder / "gpt.h", emit(2).header.bytes);
  spit(folder / "libgpt.a", emit(3).archive.bytes);
  spit(folder / "t.c",
       "#include \"gpt.h\"\nint main(void) { gpt l; gpt_dims d = {0}; return gpt_init(&l, &d, 0, 1); }\n");
  CHECK(in_folder(folder, "cc t.c -L. -lgpt -lm -o t").status != 0);
  CHECK(slurp(folder / "log").find("undefined reference") != std::string::npos);
}

TEST_CASE("library: two of them train at the same time, without data races", "[library]") {
  const ScratchFolder folder;
  write_step(folder, "first", {"x86-64-v2"});
  write_step(folder, "second", {"x86-64-v2"});
  spit(folder / "two.c", slurp(test_data("runtime/library/two_libraries.c")));
  for (const std::string flags : {"-fsanitize=thread", "-fsanitize=address,undefined"}) {
    const Ending compiled = in_folder(
        folder, "cc -g -O1 -std=c99 -D_GNU_SOURCE " + flags + " two.c -L. -lfirst -lsecond -lpthread -lm -o two");
    INFO(slurp(folder / "log"));
    REQUIRE(compiled.status == 0);
    // The sanitizer's shadow memory needs a fixed layout of the address space.
    const Ending ran = in_folder(folder, "setarch -R ./two");
    INFO(slurp(folder / "log"));
    CHECK(ran.to_string() == "status 0");
  }
}
