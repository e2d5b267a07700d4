#pragma once

#include <string>
#include <vector>

/// The tree's own files, as text, for tests of the tree itself.
namespace lathe::test {

struct SourceLine {
  int number;  ///< from 1
  std::string text;
};

struct SourceFile {
  std::string path;  ///< from the root of the tree: "ir/support/dim.h"
  std::vector<std::string> lines;

  bool has_extension(const std::vector<std::string>& extensions) const;
  bool is_header() const { return has_extension({".h"}); }
  bool is_cpp() const { return has_extension({".h", ".cpp"}); }
  bool is_in(const std::string& folder) const { return path.starts_with(folder + "/"); }
  /// "ir/tensor/dim" of "ir/support/dim.h".
  std::string stem() const { return path.substr(0, path.rfind('.')); }
};

/// What is written by people: code, build files, scripts, the page of the command. Golden data is left out.
const std::vector<SourceFile>& source_files();

/// The pages that people read: README.md and docs/.
const std::vector<SourceFile>& pages();

/// The headers that are installed: <lathe/lathe.h> and every header that it includes, directly or through others.
std::vector<const SourceFile*> public_headers();

/// Whether there is a file of this path, from the root of the tree.
bool is_file(const std::string& path);

struct Include {
  int line;
  std::string target;  ///< "ir/support/dim.h", "vector"
  bool quoted;         ///< rather than in angle brackets
};

std::vector<Include> includes(const SourceFile& file);

/// The names of the files at the top of the tree, sorted, without dot files and logs.
std::vector<std::string> top_level_files();

/// The text of one file of the tree; empty where there is none.
std::string read_source(const std::string& path);

}  // namespace lathe::test
