#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/sources.h"

/// Intrinsics and regions may be named only in their own files, in their hooks and where kernels are built
/// from them.
using namespace lathe::test;

namespace {

struct IntrinsicOperation {
  std::string file, type, record, name;
  bool is_region;
};

/// Finds the definitions of records: constinit const IntrinsicRecord r = intrinsic_record<Type>({.name = "name", ...,
/// and those of regions.
std::vector<IntrinsicOperation> intrinsic_operations() {
  static const std::regex definition(
      R"re(const Intrinsic(Region)?Record (\w+) =\s*intrinsic_(?:region_)?record<(\w+)>\(\s*\{\.name = "(\w+)")re");
  std::vector<IntrinsicOperation> found;
  for (const SourceFile& file : source_files()) {
    if (!file.is_in("ir/kernel/intrinsics")) continue;
    std::string text;
    for (const std::string& line : file.lines) text += line + "\n";
    for (std::sregex_iterator match(text.begin(), text.end(), definition), end; match != end; ++match)
      found.push_back({file.path, (*match)[3], (*match)[2], (*match)[4], (*match)[1].matched});
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

bool is_of_kernels(const SourceFile& file) { return file.is_in("ir/kernel") || file.is_in("codegen"); }

/// Returns lines of the kernel IR and the back ends, outside of the operations' folders, that contain one of the
/// names.
std::vector<std::string> lines_that_name(const std::set<std::string>& names) {
  std::vector<std::string> found;
  for (const SourceFile& file : source_files()) {
    if (!is_of_kernels(file) || file.path.find("/intrinsics/") != std::string::npos) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      for (const std::string& word : words_of(file.lines[i]))
        if (names.count(word)) found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  return found;
}

/// Whether a word occurs in code; if `called`, followed by an opening parenthesis.
bool names_word(const std::string& code, const std::string& word, bool called = false) {
  const auto is_of_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  for (auto at = code.find(word); at != std::string::npos; at = code.find(word, at + 1)) {
    const char after = at + word.size() < code.size() ? code[at + word.size()] : ' ';
    if ((at == 0 || !is_of_word(code[at - 1])) && (called ? after == '(' || after == '<' : !is_of_word(after)))
      return true;
  }
  return false;
}

/// Whether code, or device text in it, names an operation: its type, its record, or a call of its name. A rule that
/// checks for being inside a region may name that region.
bool names_operation(const std::string& line, const IntrinsicOperation& operation) {
  const std::string code = line.substr(0, line.find("//"));
  if (operation.is_region && code.find("is_in(") != std::string::npos) return false;
  return names_word(code, operation.type) || names_word(code, operation.record) ||
         names_word(code, operation.name, true);
}

/// Returns the files of the kernel IR and the back ends that name the operation, by folder.
std::map<std::string, std::set<std::string>> files_that_name(const IntrinsicOperation& operation) {
  std::map<std::string, std::set<std::string>> found;
  for (const SourceFile& file : source_files())
    if (is_of_kernels(file) &&
        std::ranges::any_of(file.lines, [&](const std::string& line) { return names_operation(line, operation); }))
      found[file.path.substr(0, file.path.rfind('/'))].insert(file.stem());
  return found;
}

}  // namespace

TEST_CASE("intrinsics: names appear only in their own files and hooks") {
  const auto operations = intrinsic_operations();
  CHECK(operations.size() >= 14);
  std::set<std::string> names;
  for (const IntrinsicOperation& operation : operations)
    names.insert({operation.type, operation.record, operation.name});
  // Features of a chip, and resources that ptxas reports.
  const std::set<std::string> allowed = {"codegen/cuda/arch.h", "codegen/cuda/arch.cpp", "codegen/cuda/resources.h",
                                         "codegen/cuda/resources.cpp"};
  for (const std::string& line : lines_that_name(names)) {
    INFO(line);
    CHECK(allowed.count(line.substr(0, line.find(':'))) == 1);
  }
}

namespace {

bool defines_intrinsics(const std::string& folder) {
  return folder == "ir/kernel/intrinsics" || folder.starts_with("ir/kernel/intrinsics/gpu");
}

}  // namespace

TEST_CASE("intrinsics: each has its header and source, and a hook per back end with its device text") {
  for (const IntrinsicOperation& operation : intrinsic_operations()) {
    const auto folders = files_that_name(operation);
    for (const auto& [folder, stems] : folders) {
      INFO(operation.name << " in " << folder << ": " << *stems.begin() << " to " << *stems.rbegin());
      CHECK(stems.size() == 1);
      CHECK(
          (defines_intrinsics(folder) || folder == "codegen/cuda/intrinsics" || folder == "codegen/llvm/intrinsics"));
    }
    INFO(operation.name);
    CHECK(folders.size() >= 2);
    CHECK(std::ranges::count_if(folders, [](const auto& entry) { return defines_intrinsics(entry.first); }) == 1);
  }
}

TEST_CASE("intrinsics: the family of its file lists each record, so that its text parses") {
  for (const IntrinsicOperation& operation : intrinsic_operations()) {
    std::string text;
    for (const SourceFile& file : source_files())
      if (file.path == operation.file)
        for (const std::string& line : file.lines) text += line + "\n";
    INFO(operation.name);
    const std::regex list("_(records|regions)\\[\\] = \\{[^}]*&" + operation.record + "\\b");
    CHECK(std::regex_search(text, list));
    CHECK(text.find("constinit const IntrinsicFamily ") != std::string::npos);
  }
}

TEST_CASE("intrinsics: a name in another file is detected") {
  CHECK(lines_that_name({"IntrinsicRegion"}).size() > 1);
  CHECK(words_of("  x = WgmmaSums::of(wgmma_record);") ==
        std::set<std::string>{"x", "WgmmaSums", "of", "wgmma_record"});
  const IntrinsicOperation mma{"", "Mma", "mma_record", "mma", false},
      stage{"", "Stage", "stage_record", "stage", true};
  for (const char* code : {"const auto s = kernel::Mma::of(in);", "sums = mma(left, right, sums);", "mma<32, 64>(a)",
                           "LATHE_FUNCTION T mma(T x) {", "{&kernel::mma_record, text}"})
    CHECK(names_operation(code, mma));
  for (const char* code : {"step(mma, left);", "wgmma(sums);", "shim_mma(value);", "x();  // as mma(a) has it"})
    CHECK_FALSE(names_operation(code, mma));
  CHECK(names_operation("const auto s = kernel::Stage::of(region);", stage));
  CHECK_FALSE(names_operation("rules.require(context.is_in(stage_record, Stage::consuming),", stage));
  const IntrinsicOperation record{"", "IntrinsicRecord", "no_record", "no_name", false};
  CHECK(files_that_name(record).size() > 2);
}

TEST_CASE("intrinsics: each has a hook in some back end") {
  std::set<std::string> hooked;
  for (const SourceFile& file : source_files())
    if (file.is_in("codegen/cuda/intrinsics") || file.is_in("codegen/llvm/intrinsics"))
      for (const std::string& line : file.lines)
        if (line.find("{&kernel::") != std::string::npos) hooked.merge(words_of(line));
  for (const IntrinsicOperation& operation : intrinsic_operations()) {
    INFO(operation.file << ": " << operation.name);
    CHECK(hooked.count(operation.record) == 1);
  }
}
