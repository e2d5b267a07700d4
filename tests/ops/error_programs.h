#pragma once

#include <string>
#include <vector>

namespace lathe::ir::test {

/// An invalid program of tests/ops/errors/LABEL.lathe and the error text that follows it in the file.
struct ErrorProgram {
  std::string label;     ///< the file's name
  std::string file;      ///< "LABEL.lathe"
  std::string name;      ///< of the graph
  std::string text;      ///< the program, after enough newlines to give it its line number in the file
  std::string expected;  ///< what() of the error

  /// Returns the op that raises the error: "matmul" in "x.lathe:3: matmul: ...".
  std::string op() const;
};

/// Returns every program of every file in `folder`, sorted by file. A program is the lines from one that starts with
/// "graph" to the next line that is "}"; the comment lines after it are the expected text.
std::vector<ErrorProgram> read_error_programs(const std::string& folder);

/// Returns the text of the UserError or ParseError that the program causes; "no error" if it is valid.
std::string error_of(const ErrorProgram& program);

}  // namespace lathe::ir::test
