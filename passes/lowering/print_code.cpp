#include "passes/lowering/print_code.h"

#include <fmt/core.h>

namespace lathe {

std::string print_code(const Program& program, const CodeStage& stage, const DimBindings& sizes) {
  if (stage.print_program) return stage.print_program(program, sizes);
  std::string text;
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    text += fmt::format("\n{} kernel {}\n", stage.comment, i) + stage.print(program.kernels[i]);
  return text;
}

}  // namespace lathe
