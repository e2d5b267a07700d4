#pragma once

#include <string>
#include <vector>

namespace lathe::ir::test {

/// One wrong program of tests/ops/errors/LABEL.lathe and the error text that follows it in the file.
struct ErrorProgram {
  std::string label;     ///< the file's name
  std::string file;      ///< "LABEL.lathe"
  std::string name;      ///< of the graph
  std::string text;      ///< the program, after as many newlines as put it at its line in the file
  std::string expected;  ///< what() of the error

  /// The op that complains: "matmul" in "x.lathe:3: matmul: ...".
  std::string op() const;
};

/// Every program of every file in `folder`, sorted by file. A program runs from a line that starts with "graph" to
/// the next line that is "}"; the comment lines after it are the text that is expected.
std::vector<ErrorProgram> read_error_programs(const std::string& folder);

/// The text of the UserError or ParseError that the program causes; "no error" where it is right.
std::string error_of(const ErrorProgram& program);

}  // namespace lathe::ir::test
