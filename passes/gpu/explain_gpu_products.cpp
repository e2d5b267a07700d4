#include "passes/gpu/explain_gpu_products.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/kernel/structure_rules.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe {

namespace {

/// "%5 contract mlp.cpp:14" of a launch that is a product alone, with what goes before and after.
const std::string* product_of(const Program& program, const Launch& launch) {
  const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
  if (launch.flops.is(0) || kernel.name.find("_product") == std::string::npos) return nullptr;
  const auto found = std::find_if(kernel.notes.begin(), kernel.notes.end(), [](const std::string& note) {
    return note.starts_with("%") && note.find(" contract ") != std::string::npos;
  });
  return found == kernel.notes.end() ? nullptr : &*found;
}

}  // namespace

bool multiplies_on_tensor_cores(const kernel::Kernel& kernel) {
  return std::any_of(kernel.values.begin(), kernel.values.end(),
                     [](const kernel::Instruction& in) { return in.op == kernel::Opcode::mma; });
}

bool multiplies_by_wgmma(const kernel::Kernel& kernel) { return kernel::multiplies(kernel.body); }

std::string explain_gpu_products(const Program& program) {
  std::vector<const Launch*> first;
  std::map<int, int> times;
  for (const Launch& launch : program.launches)
    if (product_of(program, launch) && times[launch.kernel]++ == 0) first.push_back(&launch);
  std::string text;
  for (const Launch* launch : first) {
    const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch->kernel)];
    const bool by_groups = multiplies_by_wgmma(kernel);
    const int count = times.at(launch->kernel);
    text += fmt::format("product {}: {}{}, {} multiplications and additions, by {}\n", *product_of(program, *launch),
                        by_groups                            ? "warpgroups"
                        : multiplies_on_tensor_cores(kernel) ? "tensor cores"
                                                             : "no tensor cores",
                        count > 1 ? fmt::format(", {} times", count) : "", launch->flops.to_string(), kernel.name);
    for (const std::string& note : kernel.notes)
      if (note.starts_with(gpu::not_by_wgmma)) text += "  " + note + "\n";
  }
  return text;
}

}  // namespace lathe
