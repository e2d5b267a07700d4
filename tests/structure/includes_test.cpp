#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/sources.h"
#include "tests/structure/syntax_check.h"

using namespace lathe::test;

namespace {

/// The files under `prefix` may include only the project's files under `knows`. CONTRIBUTING.md has the same table.
struct Layer {
  std::string prefix;
  std::vector<std::string> knows;
};

/// The first entry that matches a file applies.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> all{
      {"ir/support/", {"ir/support/"}},
      {"ir/hardware/", {"ir/hardware/", "ir/support/"}},
      {"ir/kernel/", {"ir/kernel/", "ir/support/"}},
      {"ir/tensor/", {"ir/tensor/", "ir/support/"}},
      {"ir/ops/", {"ir/ops/", "ir/tensor/", "ir/support/"}},
      {"ir/mesh/", {"ir/mesh/", "ir/tensor/", "ir/support/"}},
      {"ir/options/", {"ir/options/", "ir/hardware/", "ir/support/"}},
      {"passes/pipeline/", {"passes/pipeline/", "ir/"}},
      {"passes/transforms/", {"passes/transforms/", "ir/"}},
      {"passes/autodiff/", {"passes/autodiff/", "passes/transforms/", "ir/"}},
      {"passes/check/", {"passes/check/", "passes/transforms/", "ir/"}},
      {"passes/fusion/", {"passes/fusion/", "passes/transforms/", "ir/"}},
      {"passes/shard/", {"passes/shard/", "passes/fusion/", "passes/transforms/", "ir/"}},
      {"passes/chunks/", {"passes/chunks/", "passes/fusion/", "passes/transforms/", "ir/"}},
      {"passes/remat/", {"passes/remat/", "passes/fusion/", "passes/transforms/", "ir/"}},
      {"passes/program/", {"passes/program/", "passes/fusion/", "ir/"}},
      {"passes/memory/", {"passes/memory/", "passes/program/", "ir/"}},
      {"passes/lowering/", {"passes/lowering/", "passes/program/", "passes/fusion/", "ir/"}},
      // CPUs and GPUs share the lowering code, and do not include each other.
      {"passes/cpu/", {"passes/cpu/", "passes/lowering/", "passes/program/", "passes/fusion/", "ir/"}},
      {"passes/gpu/", {"passes/gpu/", "passes/lowering/", "passes/program/", "passes/fusion/", "ir/"}},
      {"passes/machines/",
       {"passes/machines/", "passes/cpu/", "passes/gpu/", "passes/lowering/", "passes/program/", "passes/fusion/",
        "ir/"}},
      {"passes/compile/",
       {"passes/compile/", "passes/pipeline/", "passes/transforms/", "passes/fusion/", "passes/shard/",
        "passes/chunks/", "passes/remat/", "passes/program/", "passes/memory/", "passes/lowering/", "ir/"}},
      {"passes/explain/",
       {"passes/explain/", "passes/compile/", "passes/fusion/", "passes/program/", "passes/memory/",
        "passes/lowering/", "ir/"}},
      {"frontend/", {"frontend/", "passes/autodiff/", "passes/transforms/", "ir/"}},
      {"codegen/llvm/", {"codegen/llvm/", "ir/kernel/", "ir/hardware/", "ir/support/"}},
      {"codegen/cuda/", {"codegen/cuda/", "ir/kernel/", "ir/hardware/", "ir/support/"}},
      {"runtime/files/", {"runtime/files/", "ir/support/"}},
      // Nothing but a backend's own folder includes its code generator, and only targets know the backends. The host
      // code of C libraries comes from LLVM, whatever runs their kernels.
      {"runtime/library/", {"runtime/", "codegen/llvm/", "passes/", "ir/"}},
      {"runtime/cpu/", {"runtime/", "codegen/llvm/", "passes/", "ir/"}},
      {"runtime/cuda/", {"runtime/", "codegen/cuda/", "passes/", "ir/"}},
      {"runtime/mpi_plugin/", {"runtime/ranks/mpi/"}},
      {"runtime/c_api/", {"runtime/", "frontend/", "passes/", "ir/"}},
      {"runtime/", {"runtime/", "passes/", "ir/"}},
      // Text needs no graphs; the other folders connect the DSL and the runtime.
      {"models/text/", {"models/text/", "runtime/files/", "ir/support/"}},
      {"models/pretrained/", {"models/pretrained/", "models/text/", "frontend/", "runtime/", "ir/support/"}},
      {"models/import/",
       {"models/import/", "frontend/", "passes/transforms/recognize/", "runtime/parameters/", "runtime/files/",
        "ir/ops/", "ir/support/", "ir/tensor/"}},
      {"models/export/",
       {"models/export/", "models/import/onnx/", "passes/transforms/", "runtime/parameters/", "runtime/files/",
        "ir/support/", "ir/tensor/", "ir/ops/"}},
      {"models/generation/",
       {"models/generation/", "models/pretrained/", "models/import/", "models/text/", "frontend/", "runtime/",
        "ir/support/", "ir/tensor/"}},
      {"models/finetune/",
       {"models/finetune/", "models/generation/", "models/pretrained/", "models/import/", "models/text/", "frontend/",
        "runtime/", "ir/support/", "ir/tensor/"}},
      {"include/lathe/aot/", {}},
      {"include/", {"models/", "frontend/", "runtime/", "ir/"}},
      // `lathe bench` measures the cases of bench/.
      {"tools/bench/", {"tools/", "bench/", "models/", "runtime/", "codegen/", "passes/", "frontend/", "ir/"}},
      {"tools/", {"tools/", "models/", "runtime/", "codegen/", "passes/", "frontend/", "ir/"}},
      {"bench/", {"bench/", "examples/", "models/", "runtime/", "codegen/", "passes/", "frontend/", "ir/"}},
      {"examples/first_program/", {}},
      {"examples/",
       {"examples/", "tests/support/", "models/", "runtime/", "codegen/", "passes/", "frontend/", "ir/"}},
      {"tests/",
       {"tests/", "examples/", "bench/", "tools/", "models/", "runtime/", "codegen/", "passes/", "frontend/", "ir/"}},
  };
  return all;
}

const Layer* layer_of(const SourceFile& file) {
  const auto at = std::find_if(layers().begin(), layers().end(),
                               [&](const Layer& layer) { return file.path.starts_with(layer.prefix); });
  return at == layers().end() ? nullptr : &*at;
}

/// Headers of other projects, by prefix, with the folders that may include them.
struct Foreign {
  std::string start;
  std::vector<std::string> folders;
  bool in_headers;  ///< may be included in headers too
};

const std::vector<Foreign>& foreign() {
  static const std::vector<Foreign> all{
      {"llvm", {"codegen/llvm"}, true},
      {"cuda", {"codegen/cuda"}, true},
      {"nvrtc", {"codegen/cuda"}, true},
      {"CLI/", {"tools", "tests/fuzz", "tests/robustness"}, true},
      {"catch2/", {"tests"}, true},
      {"nlohmann/", {"runtime", "models", "tools", "tests"}, true},
      {"openssl/", {"runtime", "codegen/llvm"}, false},
      {"pcre2", {"models/text"}, false},
      {"utf8proc", {"models/text"}, false},
      {"zlib", {"runtime/files/zip"}, false},
  };
  return all;
}

bool exists(const std::string& path) {
  const auto& files = source_files();
  return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.path == path; });
}

}  // namespace

TEST_CASE("includes: every folder includes only its allowed layers") {
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp()) continue;
    INFO(file.path);
    const Layer* layer = layer_of(file);
    REQUIRE(layer);
    for (const Include& include : includes(file)) {
      if (!include.quoted) continue;
      INFO("line " << include.line << ": \"" << include.target << '"');
      CHECK(exists(include.target));
      CHECK(std::any_of(layer->knows.begin(), layer->knows.end(),
                        [&](const auto& known) { return include.target.starts_with(known); }));
    }
  }
}

namespace {

/// Returns the folders that each folder directly below `root` includes, without itself. Files of the root itself
/// count as a folder.
std::map<std::string, std::set<std::string>> folders_below(const std::string& root) {
  const auto folder = [&](const std::string& path) {
    const auto slash = path.find('/', root.size() + 1);
    return slash == std::string::npos ? root : path.substr(0, slash);
  };
  std::map<std::string, std::set<std::string>> found;
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp() || !file.is_in(root)) continue;
    for (const Include& include : includes(file))
      if (include.target.starts_with(root + "/") && folder(include.target) != folder(file.path))
        found[folder(file.path)].insert(folder(include.target));
  }
  return found;
}

/// Removes the folders that include none of the others, again and again. The rest is in cycles or includes them.
std::set<std::string> in_cycles(std::map<std::string, std::set<std::string>> graph) {
  for (;;) {
    std::set<std::string> free;
    for (const auto& [folder, others] : graph)
      if (std::ranges::none_of(others, [&](const std::string& other) { return graph.contains(other); }))
        free.insert(folder);
    if (free.empty()) break;
    for (const std::string& folder : free) graph.erase(folder);
  }
  std::set<std::string> left;
  for (const auto& [folder, others] : graph) left.insert(folder);
  return left;
}

}  // namespace

TEST_CASE("includes: the folders of ir, passes, codegen, runtime and models form no cycle") {
  for (const char* root : {"ir", "passes", "codegen", "runtime", "models"}) {
    const auto graph = folders_below(root);
    CHECK((graph.size() > 1 || root == std::string("codegen")));
    CHECK(in_cycles(graph) == std::set<std::string>{});
  }
}

namespace {

/// Returns the names in backquotes of a table cell.
std::vector<std::string> names_in(const std::string& cell) {
  static const std::regex name("`([^`]+)`");
  std::vector<std::string> names;
  for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at) names.push_back((*at)[1]);
  return names;
}

/// Returns the table of layers on a page: the folders that each folder may include, without itself.
std::map<std::string, std::set<std::string>> layers_on(const std::string& path) {
  const auto& all = pages();
  const auto page = std::ranges::find(all, path, &SourceFile::path);
  REQUIRE(page != all.end());
  auto line = std::ranges::find(page->lines, "| folder | may include |");
  REQUIRE(page->lines.end() - line > 2);
  std::map<std::string, std::set<std::string>> found;
  for (line += 2; line != page->lines.end() && line->starts_with("| "); ++line) {
    const auto middle = line->find(" | ");
    const std::vector<std::string> known = names_in(line->substr(middle));
    for (const std::string& folder : names_in(line->substr(0, middle))) found[folder] = {known.begin(), known.end()};
  }
  return found;
}

}  // namespace

TEST_CASE("includes: the page for contributors has the same layers") {
  std::map<std::string, std::set<std::string>> expected;
  const auto folder = [](const std::string& prefix) { return prefix.substr(0, prefix.size() - 1); };
  for (const Layer& layer : layers()) {
    std::set<std::string>& known = expected[folder(layer.prefix)];
    for (const std::string& other : layer.knows)
      if (other != layer.prefix) known.insert(folder(other));
  }
  CHECK(layers_on("CONTRIBUTING.md") == expected);
}

TEST_CASE("includes: third-party headers are included only in allowed folders") {
  for (const SourceFile& file : source_files()) {
    if (!file.is_cpp()) continue;
    for (const Include& include : includes(file)) {
      if (include.quoted) continue;
      for (const Foreign& other : foreign()) {
        if (!include.target.starts_with(other.start)) continue;
        INFO(file.path << ":" << include.line << ": <" << include.target << ">");
        CHECK((other.in_headers || !file.is_header()));
        CHECK(std::any_of(other.folders.begin(), other.folders.end(),
                          [&](const auto& folder) { return file.is_in(folder); }));
      }
    }
  }
}

namespace {

/// Whether a program may include it: excludes kernels and programs, passes, code generation and devices, the
/// transaction of a save, and what families of models are made of.
bool is_public(const std::string& path) {
  const std::vector<std::string> inner{"ir/kernel/",
                                       "ir/ops/",
                                       "passes/",
                                       "codegen/",
                                       "runtime/cuda/",
                                       "runtime/files/write/folder_save.h",
                                       "models/pretrained/families",
                                       "models/pretrained/family.h",
                                       "models/pretrained/transformer_layer.h"};
  return std::none_of(inner.begin(), inner.end(), [&](const auto& folder) { return path.starts_with(folder); });
}

}  // namespace

TEST_CASE("includes: public headers include only standard and public headers") {
  CHECK(public_headers().size() > 20);
  for (const SourceFile* header : public_headers()) {
    INFO(header->path);
    CHECK(is_public(header->path));
    for (const Include& include : includes(*header)) {
      INFO(include.line << ": " << include.target);
      // Standard headers have no folder; <sys/..> is the system's.
      CHECK(
          (include.quoted || include.target.starts_with("lathe/") || include.target.find('/') == std::string::npos));
    }
  }
}

TEST_CASE("includes: public headers include no standard header that is slow to compile") {
  // Each costs every program 0.05 to 0.3 s. Sources include them instead.
  const std::set<std::string> slow{"algorithm", "chrono",  "condition_variable",
                                   "fstream",   "future",  "iomanip",
                                   "iostream",  "istream", "locale",
                                   "mutex",     "ostream", "ranges",
                                   "regex",     "sstream", "thread"};
  for (const SourceFile* header : public_headers())
    for (const Include& include : includes(*header)) {
      INFO(header->path << ":" << include.line << ": <" << include.target << ">");
      CHECK_FALSE(slow.contains(include.target));
    }
}

TEST_CASE("includes: lathe.h includes all other headers of its folder except that for C, and each compiles alone") {
  std::set<std::string> included;
  for (const SourceFile* header : public_headers()) included.insert(header->path);
  for (const SourceFile& file : source_files()) {
    // Headers for users of C libraries include each other only; tests/embedded compiles them in C and C++.
    if (!file.is_in("include") || file.is_in("include/lathe/aot")) continue;
    INFO(file.path);
    CHECK(included.count(file.path));
    CHECK(compiles("#include <" + file.path.substr(std::string("include/").size()) + ">\n"));
  }
}

TEST_CASE("includes: every header is included by a file other than its own source") {
  std::set<std::string> used;
  for (const SourceFile& file : source_files())
    for (const Include& include : includes(file))
      if (include.target != file.stem() + ".h") used.insert(include.target);
  for (const SourceFile& file : source_files()) {
    if (!file.is_header() || file.is_in("include")) continue;
    INFO(file.path);
    CHECK(used.count(file.path));
  }
}
