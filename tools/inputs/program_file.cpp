#include "tools/inputs/program_file.h"

#include <algorithm>
#include <thread>

#include "ir/kernel/verify/verifier.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/program/signature.h"
#include "passes/program/text/parse_program.h"
#include "runtime/backend/run_program.h"
#include "tools/inputs/files.h"
#include "tools/options/target_option.h"

namespace lathe::tools {

namespace {

int all_cpus() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

/// Runs `action`; reports what a verifier or a code generator rejects as an error of the file.
template <class Action>
auto checked(std::string_view label, const std::string& hint, const Action& action) {
  try {
    return action();
  } catch (const InternalError& error) {
    throw UserError(error.message(), label, hint);
  }
}

Program load_program(const std::string& path) {
  Program program = parse_program(read_text(path), path);
  checked("program_rule", "docs/kernel-ir.md describes the rules of kernels and programs by their labels", [&] {
    for (const kernel::Kernel& kernel : program.kernels) kernel::verify(kernel);
    verify_program(program);
  });
  return program;
}

}  // namespace

bool is_program_file(const std::string& path) { return path.ends_with(".program"); }

Tensors run_program_file(const std::string& path, const ArgumentOptions& arguments, const std::string& target,
                         int threads) {
  const Program program = load_program(path);
  DimBindings dims = parse_dims(arguments.dims);
  const std::vector<std::string> extra = dims_without_argument(program);
  const auto is_extra = [&](const std::string& name) { return std::ranges::find(extra, name) != extra.end(); };
  ArgumentOptions others = arguments;
  std::erase_if(others.dims, [&](const std::string& option) { return is_extra(option.substr(0, option.find('='))); });
  std::erase_if(dims, [&](const auto& dim) { return !is_extra(dim.first); });
  const Arguments given = load_arguments(signature_of(program), others, false);
  const std::unique_ptr<Device> device = open_device(compile_options(target), threads > 0 ? threads : all_cpus());
  return checked("program_target", "give the --target that the program was compiled for",
                 [&] { return run_program(program, *device, given.tensors, dims); });
}

}  // namespace lathe::tools
