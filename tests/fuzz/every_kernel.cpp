#include "tests/fuzz/every_kernel.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>

#include "ir/kernel/printer.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "tests/support/programs/program_interpreter.h"

namespace lathe::fuzz {

namespace {

/// Returns a kernel's text without names, and the dims of a launch.
std::string key_of(const Program& program, const Launch& launch, const DimBindings& dims) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : launch.dims) sizes.push_back(dim.evaluate(dims));
  const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
  return fmt::format("{}{}", kernel::canonical_text(kernel), fmt::join(sizes, " "));
}

}  // namespace

std::optional<std::string> interpret_new_kernels(const ir::Graph& graph, const Executable& executable,
                                                 const DimBindings& dims, const Tensors& arguments) {
  constexpr std::size_t most = 1 << 16;
  static std::set<std::size_t> known;  // hashes
  if (known.size() > most) known.clear();
  bool is_new = false;
  const Program& program = program_of(executable);
  for (const Launch& launch : program.launches)
    is_new |= known.insert(std::hash<std::string>{}(key_of(program, launch, dims))).second;
  if (!is_new) return std::nullopt;
  const test::ProgramInterpreter kernels(graph, program);
  try {
    kernels.run(arguments);
  } catch (const UserError&) {  // an index out of range, which other oracles compare
  } catch (const InternalError& error) {
    return fmt::format("in the kernel interpreter: {}", error.what());
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
