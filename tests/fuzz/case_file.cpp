#include "tests/fuzz/case_file.h"

#include <fmt/core.h>

#include <fstream>
#include <sstream>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::fuzz {

std::string case_text(const Case& from) {
  std::string text = fmt::format("// seed {}\n", from.seed);
  if (from.tame) text += "// tame\n";
  if (from.scaled) text += "// scaled\n";
  for (const DimBindings& dims : from.sizes) text += fmt::format("// sizes {}\n", test::to_string(dims));
  return text + ir::print(from.graph, {.locations = false});
}

Case read_case(const std::string& path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  if (!file) throw UserError(fmt::format("cannot read {}", path), "file_read");
  Case result;
  std::istringstream lines(all.str());
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    std::istringstream words(line.substr(2));
    std::string word;
    words >> word;
    if (word == "seed") words >> result.seed;
    if (word == "tame") result.tame = true;
    if (word == "scaled") result.scaled = true;
    if (word != "sizes") continue;
    DimBindings& dims = result.sizes.emplace_back();
    while (words >> word) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) throw UserError(fmt::format("{}: '{}' is no size", path, word), "file_read");
      dims[word.substr(0, equals)] = std::strtoll(word.c_str() + equals + 1, nullptr, 10);
    }
  }
  if (result.sizes.empty()) result.sizes.push_back({});
  result.graph = ir::parse_graph(all.str(), path);
  ir::verify(result.graph);
  return result;
}

}  // namespace lathe::fuzz
