#include "tests/ops/error_programs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"

namespace lathe::ir::test {

namespace {

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Reads one program that starts at lines[at], and moves `at` past it.
ErrorProgram read_program(const std::filesystem::path& path, const std::vector<std::string>& lines, std::size_t& at) {
  ErrorProgram program{.label = path.stem().string(),
                       .file = path.filename().string(),
                       .name = lines[at].substr(0, lines[at].find('(')),
                       .text = std::string(at, '\n'),
                       .expected = {}};
  for (; at < lines.size() && lines[at] != "}"; ++at) program.text += lines[at] + '\n';
  program.text += "}\n";
  for (++at; at < lines.size() && lines[at].starts_with("// "); ++at)
    program.expected += (program.expected.empty() ? "" : "\n") + lines[at].substr(3);
  return program;
}

}  // namespace

std::string ErrorProgram::op() const {
  const auto start = expected.find(": ");
  const auto end = expected.find(": ", start + 2);
  return start == std::string::npos || end == std::string::npos ? "" : expected.substr(start + 2, end - start - 2);
}

std::vector<ErrorProgram> read_error_programs(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".lathe") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<ErrorProgram> programs;
  for (const auto& path : files) {
    const auto lines = read_lines(path);
    for (std::size_t at = 0; at < lines.size();) {
      if (lines[at].starts_with("graph"))
        programs.push_back(read_program(path, lines, at));
      else
        ++at;
    }
  }
  return programs;
}

std::string error_of(const ErrorProgram& program) {
  try {
    (void)parse_graph(program.text, program.file);
  } catch (const ParseError& error) {
    return error.what();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lathe::ir::test
