#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <set>

#include "tests/structure/sources.h"

using namespace lathe::test;

namespace {

/// Returns the full names of namespaces that a file opens at the left margin: "lathe::ir" for `namespace lathe::ir
/// {`. Ignores namespaces with only forward declarations of another folder's types, and those in CUDA text.
std::set<std::string> namespaces_of(const SourceFile& file) {
  const std::string opens = "namespace lathe", closes = " {";
  std::set<std::string> found;
  bool in_cuda_text = false;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (line.find("R\"cuda(") != std::string::npos) in_cuda_text = true;
    if (line.find(")cuda\"") != std::string::npos) in_cuda_text = false;
    if (in_cuda_text || !line.starts_with(opens) || !line.ends_with(closes)) continue;
    const auto body = file.lines.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto end = std::find_if(body, file.lines.end(), [](const auto& text) { return text.starts_with("}"); });
    const bool declares_types = std::all_of(body, end, [](const auto& text) {
      return (text.starts_with("class ") || text.starts_with("struct ")) && text.ends_with(";");
    });
    if (!declares_types) found.insert(line.substr(10, line.size() - 10 - closes.size()));
  }
  return found;
}

/// `detail` namespaces are private to a folder.
std::string without_detail(const std::string& name) {
  const std::string detail = "::detail";
  return name.ends_with(detail) ? name.substr(0, name.size() - detail.size()) : name;
}

bool is_library(const SourceFile& file) {
  static const std::vector<std::string> rooms{"ir", "frontend", "passes", "codegen", "runtime", "models", "tools"};
  return file.is_cpp() && std::any_of(rooms.begin(), rooms.end(), [&](const auto& room) { return file.is_in(room); });
}

std::string folder_of(const SourceFile& file) { return file.path.substr(0, file.path.rfind('/')); }
std::string name_of(const SourceFile& file) { return file.path.substr(file.path.rfind('/') + 1); }

/// Checks that file names are unique, except those in `twins`.
void check_names(const std::vector<SourceFile>& files, const std::set<std::string>& twins) {
  std::map<std::string, std::string> seen;
  for (const SourceFile& file : files) {
    if (twins.contains(name_of(file))) continue;
    INFO(file.path << " beside " << seen[name_of(file)]);
    CHECK(seen[name_of(file)].empty());
    seen[name_of(file)] = file.path;
  }
  CHECK(seen.size() > 10);
}

}  // namespace

TEST_CASE("structure: a folder has one namespace") {
  // DLPack's structs, whose header declares them in its own namespace.
  const std::string dlpack = "lathe::dlpack";
  std::map<std::string, std::set<std::string>> by_folder;
  for (const SourceFile& file : source_files())
    if (is_library(file))
      for (const std::string& name : namespaces_of(file))
        if (name != dlpack) by_folder[folder_of(file)].insert(without_detail(name));
  CHECK(by_folder.size() > 50);
  for (const auto& [folder, namespaces] : by_folder) {
    std::string all;
    for (const std::string& name : namespaces) all += " " + name;
    INFO(folder << ":" << all);
    CHECK(namespaces.size() == 1);
  }
}

TEST_CASE("structure: files of one name are variants for two languages or targets") {
  // The graph's and the kernel's version, a template's, or the DSL's next to the IR's; the emitters for CPUs and
  // GPUs. An intrinsic has its record in ir/kernel/intrinsics, and its instructions in a file of the same name.
  const std::set<std::string> twins{
      "builder.h",       "emitter.h",      "graph.h",      "hooks.h",       "interpreter.h",
      "parser.h",        "printer.h",      "verifier.h",   "builder.cpp",   "graph.cpp",
      "hooks.cpp",       "emitter.cpp",    "parser.cpp",   "printer.cpp",   "verifier.cpp",
      "interpreter.cpp", "lexer.h",        "lexer.cpp",    "mma.cpp",       "wgmma.cpp",
      "tile_mma.cpp",    "split_bf16.cpp", "exchange.cpp", "fast_math.cpp", "block_order.cpp"};
  std::vector<SourceFile> library;
  std::copy_if(source_files().begin(), source_files().end(), std::back_inserter(library), is_library);
  check_names(library, twins);
}

TEST_CASE("structure: two pages have different names") { check_names(pages(), {"README.md"}); }
