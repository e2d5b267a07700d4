#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/sources.h"

/// Machine operations and regions are known to their own files, to their hooks and to those who build kernels of
/// them.
using namespace lathe::test;

namespace {

struct MachineOperation {
  std::string file, type, record, name;
};

/// Of the definitions of records: constinit const MachineRecord r = machine_record<Type>({.name = "name", ..., and of
/// those of regions.
std::vector<MachineOperation> machine_operations() {
  static const std::regex definition(
      R"re(const Machine(?:Region)?Record (\w+) =\s*machine_(?:region_)?record<(\w+)>\(\s*\{\.name = "(\w+)")re");
  std::vector<MachineOperation> found;
  for (const SourceFile& file : source_files()) {
    if (!file.is_in("ir/kernel/machine")) continue;
    std::string text;
    for (const std::string& line : file.lines) text += line + "\n";
    for (std::sregex_iterator match(text.begin(), text.end(), definition), end; match != end; ++match)
      found.push_back({file.path, (*match)[2], (*match)[1], (*match)[3]});
  }
  return found;
}

std::set<std::string> words_of(const std::string& line) {
  static const std::regex word(R"(\w+)");
  std::set<std::string> found;
  for (std::sregex_iterator match(line.begin(), line.end(), word), end; match != end; ++match)
    found.insert(match->str());
  return found;
}

/// Lines of the kernel IR and the back ends, outside of the folders of operations, that name one. lathe.cuh is the
/// library that kernels are written in.
std::vector<std::string> lines_that_name(const std::set<std::string>& names) {
  std::vector<std::string> found;
  for (const SourceFile& file : source_files()) {
    const bool is_generic = file.is_in("ir/kernel") || file.is_in("codegen");
    if (!is_generic || file.path.find("/machine/") != std::string::npos ||
        file.path.starts_with("codegen/cuda/prelude/"))
      continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      for (const std::string& word : words_of(file.lines[i]))
        if (names.count(word)) found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  return found;
}

}  // namespace

TEST_CASE("machine operations: their names stand in their own files and in hooks alone") {
  const auto operations = machine_operations();
  CHECK(operations.size() >= 14);
  std::set<std::string> names;
  for (const MachineOperation& operation : operations)
    names.insert({operation.type, operation.record, operation.name});
  // What a chip has, and what ptxas says of it.
  const std::set<std::string> allowed = {"codegen/cuda/arch.h", "codegen/cuda/arch.cpp", "codegen/cuda/resources.h",
                                         "codegen/cuda/resources.cpp"};
  for (const std::string& line : lines_that_name(names)) {
    INFO(line);
    CHECK(allowed.count(line.substr(0, line.find(':'))) == 1);
  }
}

TEST_CASE("machine operations: a name in another file is seen") {
  CHECK(lines_that_name({"MachineRegion"}).size() > 1);
  CHECK(words_of("  x = WgmmaSums::of(wgmma_record);") ==
        std::set<std::string>{"x", "WgmmaSums", "of", "wgmma_record"});
}

TEST_CASE("machine operations: a back end has a hook for each") {
  std::set<std::string> hooked;
  for (const SourceFile& file : source_files())
    if (file.is_in("codegen/cuda/machine") || file.is_in("codegen/llvm/machine"))
      for (const std::string& line : file.lines)
        if (line.find("{&kernel::") != std::string::npos) hooked.merge(words_of(line));
  for (const MachineOperation& operation : machine_operations()) {
    INFO(operation.file << ": " << operation.name);
    CHECK(hooked.count(operation.record) == 1);
  }
}
