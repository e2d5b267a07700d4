#include "passes/lowering/print_program.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ir/kernel/printer.h"

namespace lathe {

namespace {

std::string print_launches(const Program& program) {
  std::string text;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    std::vector<std::string> buffers, dims;
    for (const int buffer : launch.buffers) buffers.push_back(program.buffers[buffer].name);
    for (const Dim& dim : launch.dims) dims.push_back(dim.to_string());
    text += fmt::format("// launch {}: kernel {} @{}({}){}{}  from {} at {}\n", i, launch.kernel,
                        program.kernels[launch.kernel].name, fmt::join(buffers, ", "), dims.empty() ? "" : " for ",
                        fmt::join(dims, ", "), fmt::join(launch.names(), ", "), launch.loc.to_string());
  }
  return text;
}

}  // namespace

std::string print_code(const Program& program, const CodeStage& stage) {
  std::string text;
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    text += fmt::format("\n{} kernel {}\n", stage.comment, i) + stage.print(program.kernels[i]);
  return text;
}

std::string print_kernels(const Program& program) {
  return print_launches(program) +
         print_code(program, {.name = "kernels", .doc = "", .print = [](const auto& k) { return kernel::print(k); }});
}

}  // namespace lathe
