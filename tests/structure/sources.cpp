#include "tests/structure/sources.h"
#include "tests/support/texts/test_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace lathe::test {

namespace {

namespace fs = std::filesystem;

const char* const folders[] = {"ir",    "frontend", "passes", "codegen", "runtime", "models", "tools",
                               "tests", "examples", "bench",  "include", "cmake",   ".ci"};

fs::path root() { return source_path("."); }

SourceFile read(const fs::path& path) {
  SourceFile file{.path = fs::relative(path, root()).generic_string(), .lines = {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

bool is_source(const fs::path& path) {
  const std::vector<std::string> known{".h",  ".def", ".c",    ".cpp", ".cu",    ".cmake", ".in", ".sh",
                                       ".js", ".css", ".html", ".py",  ".lathe", ".yaml",  ".map"};
  const std::string extension = path.extension().string();
  return std::find(known.begin(), known.end(), extension) != known.end() || path.filename() == "CMakeLists.txt" ||
         path.parent_path().filename() == ".ci";
}

}  // namespace

bool SourceFile::has_extension(const std::vector<std::string>& extensions) const {
  return std::any_of(extensions.begin(), extensions.end(), [&](const auto& e) { return path.ends_with(e); });
}

const std::vector<SourceFile>& source_files() {
  static const std::vector<SourceFile> files = [] {
    std::vector<SourceFile> all{read(root() / "CMakeLists.txt")};
    for (const char* folder : folders) {
      if (!fs::exists(root() / folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root() / folder)) {
        const bool golden = entry.path().parent_path() == root() / "tests" / "goldens";
        if (entry.is_regular_file() && is_source(entry.path()) && !golden) all.push_back(read(entry.path()));
      }
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return all;
  }();
  return files;
}

const std::vector<SourceFile>& pages() {
  static const std::vector<SourceFile> files = [] {
    std::vector<SourceFile> all{read(root() / "README.md"), read(root() / "CONTRIBUTING.md")};
    for (const auto& entry : fs::recursive_directory_iterator(root() / "docs"))
      if (entry.path().extension() == ".md") all.push_back(read(entry.path()));
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return all;
  }();
  return files;
}

bool is_file(const std::string& path) { return fs::is_regular_file(root() / path); }

std::vector<Include> includes(const SourceFile& file) {
  std::vector<Include> found;
  int number = 0;
  for (const std::string& line : file.lines) {
    ++number;
    if (!line.starts_with("#include ")) continue;
    const auto open = line.find_first_of("\"<", 9);
    const auto close = open == std::string::npos ? open : line.find_first_of("\">", open + 1);
    if (close == std::string::npos) continue;
    found.push_back({number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return found;
}

std::vector<const SourceFile*> public_headers() {
  std::vector<std::string> next{"include/lathe/lathe.h", "include/lathe/lathe_c.h"};
  std::set<std::string> seen(next.begin(), next.end());
  std::vector<const SourceFile*> found;
  while (!next.empty()) {
    const std::string path = next.back();
    next.pop_back();
    const auto file = std::find_if(source_files().begin(), source_files().end(),
                                   [&](const auto& candidate) { return candidate.path == path; });
    if (file == source_files().end()) throw std::runtime_error("no header " + path);
    found.push_back(&*file);
    for (const Include& include : includes(*file)) {
      const bool of_public_folder = include.target.starts_with("lathe/");
      if (!include.quoted && !of_public_folder) continue;
      const std::string header = (of_public_folder ? "include/" : "") + include.target;
      if (seen.insert(header).second) next.push_back(header);
    }
  }
  return found;
}

std::vector<std::string> top_level_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root())) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name[0] != '.' && !name.ends_with(".log")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_source(const std::string& path) {
  std::ifstream in(root() / path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace lathe::test
