#pragma once

#include <string>
#include <vector>

/// The files of the source tree as text, for tests of the tree itself.
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
  /// Returns the path without its extension: "ir/support/dim" for "ir/support/dim.h".
  std::string stem() const { return path.substr(0, path.rfind('.')); }
};

/// Files written by people: code, build files, scripts, the HTML page of the command. Excludes golden data.
const std::vector<SourceFile>& source_files();

/// Pages for readers: README.md, CONTRIBUTING.md and docs/.
const std::vector<SourceFile>& pages();

/// Returns the installed headers: <lathe/lathe.h>, all headers that it includes, directly or indirectly, and
/// <lathe/lathe_c.h>.
std::vector<const SourceFile*> public_headers();

/// Whether a file with this path from the root of the tree exists.
bool is_file(const std::string& path);

struct Include {
  int line;
  std::string target;  ///< "ir/support/dim.h", "vector"
  bool quoted;         ///< false: in angle brackets
};

std::vector<Include> includes(const SourceFile& file);

/// Returns the sorted names of the files in the root folder, without dot files and logs.
std::vector<std::string> top_level_files();

/// Returns the text of a file of the tree; empty if it does not exist.
std::string read_source(const std::string& path);

}  // namespace lathe::test
