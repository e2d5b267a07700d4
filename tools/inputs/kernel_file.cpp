#include "tools/inputs/kernel_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>
#include <random>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/text/parser.h"
#include "ir/kernel/verify/verifier.h"
#include "runtime/files/tensors/tensor_file.h"
#include "tools/inputs/files.h"

namespace lathe::tools {

namespace {

/// The elements of a buffer that no file contains: as many as may be accessed. The result has those that were.
constexpr std::int64_t room = 1 << 20;

/// Runs `action`; reports what the verifier or the interpreter rejects as an error of the file.
template <class Action>
auto checked(const Action& action) {
  try {
    return action();
  } catch (const InternalError& error) {
    throw UserError(error.message(), "kernel_rule", "docs/kernel-ir.md describes this rule by its label");
  }
}

kernel::Kernel load_kernel(const std::string& path) {
  std::vector<kernel::Kernel> kernels = kernel::parse_kernels(read_text(path), path);
  if (kernels.size() != 1)
    throw UserError(fmt::format("{} has {} kernels", path, kernels.size()), "kernel_file",
                    "write the kernel to run to a file of its own");
  checked([&] { kernel::verify(kernels[0]); });
  return std::move(kernels[0]);
}

std::vector<std::int64_t> sizes_of(const kernel::Kernel& kernel, const std::vector<std::string>& options) {
  DimBindings given = parse_dims(options);
  std::vector<std::int64_t> sizes;
  for (const std::string& dim : kernel.dims) {
    const auto found = given.find(dim);
    if (found == given.end())
      throw UserError(fmt::format("no size for the dim {}", dim), "dim_option", fmt::format("give --dim {}=8", dim));
    sizes.push_back(found->second);
    given.erase(found);
  }
  if (!given.empty())
    throw UserError(fmt::format("--dim {}: the kernel has no dim of this name", given.begin()->first), "dim_option",
                    fmt::format("its dims are {}", fmt::join(kernel.dims, ", ")));
  return sizes;
}

std::optional<HostTensor> from_file(const kernel::BufferInfo& buffer, const std::vector<std::string>& files) {
  std::optional<HostTensor> found;
  for (const std::string& path : files)
    if (const TensorFile file = TensorFile::open(path); file.contains(buffer.name)) found = file.tensor(buffer.name);
  if (found && found->dtype() != buffer.dtype)
    throw UserError(fmt::format("{} is {} in the file, and {} in the kernel", buffer.name, name(found->dtype()),
                                name(buffer.dtype)),
                    "argument_dtype");
  return found;
}

HostTensor generated(const kernel::BufferInfo& buffer, std::mt19937_64& random) {
  HostTensor tensor(buffer.dtype, {room});
  const bool is_real = is_float(buffer.dtype), is_read = buffer.access != kernel::Access::write;
  std::uniform_real_distribution<double> real(-1, 1);
  for (std::int64_t i = 0; i < room; ++i) {
    const double fill = is_real ? std::numeric_limits<double>::quiet_NaN() : buffer.dtype == u8 ? 255 : -1;
    const double made = is_real ? real(random) : static_cast<double>(random() % (buffer.dtype == boolean ? 2 : 8));
    if (is_read || buffer.dtype != boolean) tensor.set(i, is_read ? made : fill);
  }
  return tensor;
}

/// Returns the first elements.
HostTensor first(const HostTensor& tensor, std::int64_t count) {
  HostTensor part(tensor.dtype(), {count});
  std::memcpy(part.data(), tensor.data(), part.bytes());
  return part;
}

}  // namespace

bool is_kernel_file(const std::string& path) { return path.ends_with(".kernel"); }

Tensors run_kernel_file(const std::string& path, const ArgumentOptions& arguments) {
  const kernel::Kernel kernel = load_kernel(path);
  const std::vector<std::int64_t> sizes = sizes_of(kernel, arguments.dims);
  std::mt19937_64 random(arguments.seed);
  std::vector<HostTensor> tensors;
  std::vector<kernel::BoundBuffer> bound;
  std::vector<bool> given;
  for (int i = 0; i < kernel.parameter_count(); ++i) {
    const kernel::BufferInfo& buffer = kernel.buffers[i];
    std::optional<HostTensor> tensor = from_file(buffer, arguments.files);
    given.push_back(tensor.has_value());
    if (!tensor && buffer.access != kernel::Access::write && !arguments.random)
      throw UserError(fmt::format("no value for {}", buffer.name), "argument_missing",
                      "give --input FILE.safetensors or FILE.npz, or --random to generate values");
    tensors.push_back(tensor ? std::move(*tensor) : generated(buffer, random));
  }
  for (HostTensor& tensor : tensors) bound.push_back({tensor.data(), tensor.numel()});
  std::vector<std::int64_t> reached(bound.size());
  const std::int64_t status = checked([&] { return interpret(kernel, bound, sizes, {.reached = reached}); });
  if (status != 0) throw UserError(fmt::format("a check of the kernel failed with code {}", status), "kernel_check");
  Tensors results;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (kernel.buffers[i].access != kernel::Access::read)
      results.insert_or_assign(kernel.buffers[i].name, given[i] ? tensors[i] : first(tensors[i], reached[i]));
  return results;
}

}  // namespace lathe::tools
