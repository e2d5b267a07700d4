#include <algorithm>
#include <catch2/catch.hpp>
#include <regex>

#include "tests/structure/sources.h"
#include "tests/structure/syntax_check.h"

/// Example code in comments of public headers must compile.
using namespace lathe::test;

namespace {

/// Names that examples use without declaring them.
const char* const names_in_examples =
    "#include <lathe/lathe.h>\n"
    "#include <lathe/lathe_c.h>\n"
    "#include <iostream>\n"
    R"(
using namespace lathe;
struct RowSampler {
  HostTensor random(std::int64_t step);
  void random(std::int64_t step, HostTensor& rows);
};
struct Values {
  Graph g{"g"};
  ir::Graph step, training, forward;
  Tensor loss, w, v, x, beta, tokens;
  models::GptConfig config;
  const models::Gpt& model;
  const CustomOp &swish, &huber;
  Dim B{"B"}, T{"T"};
  Batches batches;
  RowSampler sampler;
  std::string text;
  void* capsule;
  std::vector<std::int64_t> prompt;
  HostTensor result;
  TrainingOptions options;
  StartValue start;
};
)";

struct Example {
  std::string place, code;
  bool declares_type = false;
};

/// Returns comment lines that are indented by at least three spaces, if they look like statements.
std::vector<Example> examples_of(const SourceFile& header) {
  static const std::regex line_of_code(R"(\s*/// {3,}(\S.*))"), statement(R"(;\s*(//.*)?$)");
  std::vector<Example> found;
  for (std::size_t i = 0; i < header.lines.size(); ++i) {
    Example example{.place = header.path + ":" + std::to_string(i + 1), .code = {}};
    bool is_code = false;
    std::smatch match;
    for (; i < header.lines.size() && std::regex_match(header.lines[i], match, line_of_code); ++i) {
      const std::string line = match[1];
      is_code = is_code || std::regex_search(line, statement);
      if (!line.starts_with("...")) example.code += line + "\n";
    }
    example.declares_type = example.code.starts_with("struct ");
    // The text of a graph has semicolons too.
    if (is_code && !example.code.starts_with("graph @")) found.push_back(example);
  }
  return found;
}

}  // namespace

TEST_CASE("headers: example code in comments of public headers compiles") {
  std::string program = names_in_examples;
  std::size_t count = 0;
  for (const SourceFile* header : public_headers())
    for (const Example& example : examples_of(*header)) {
      const std::string number = std::to_string(count++), line = "#line 1 \"" + example.place + "\"\n";
      program += example.declares_type ? "namespace example_" + number + " {\n" + line + example.code + "}\n"
                                       : "struct Example" + number + " : Values {\n  void run() {\n" + line +
                                             example.code + "  }\n};\n";
    }
  CHECK(count >= 20);
  CHECK(compiles(program));
}
