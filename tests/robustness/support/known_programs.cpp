#include "tests/robustness/support/known_programs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "frontend/models/loss_graph.h"
#include "ir/tensor/text/printer.h"
#include "tests/support/graphs/small_models.h"

namespace lathe::robustness {

namespace {

constexpr const char* odd_names = R"(graph @"a\x1b[31m\n*/"(
  input %"x\x00\"": f32[n, d=4] loc("dir/\n//\x9b.cpp":3 in "layer.\n"),
  parameter %"\xff": f32[d=4, d=4]
) {
  %1 = linear %"x\x00\"", %"\xff"  name("\\\n")  loc(gradient "\t":5)
  output "\r" %1
}
)";

std::vector<std::string> read_programs() {
  namespace fs = std::filesystem;
  std::vector<std::string> programs{odd_names, ir::print(models::loss_graph(test::small_gpt(f32, 1)).graph),
                                    ir::print(models::loss_graph(test::small_llama(bf16, 1)).graph),
                                    ir::print(models::loss_graph(test::small_encoder_decoder()).graph)};
  std::vector<fs::path> files;
  for (const char* folder : {"tests/fuzz/regressions", "tests/ops/errors"})
    for (const auto& item : fs::directory_iterator(fs::path(LATHE_SOURCE_ROOT) / folder))
      if (item.path().extension() == ".lathe") files.push_back(item.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    programs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return programs;
}

}  // namespace

std::span<const std::string> known_programs() {
  static const std::vector<std::string> programs = read_programs();
  return programs;
}

}  // namespace lathe::robustness
