#include "models/import/stored/mapped_tensor.h"

#include <fmt/core.h>

#include <cstring>

#include "ir/support/error.h"

namespace lathe::importing {

std::uint64_t numel(const std::vector<std::int64_t>& shape, const std::string& owner) {
  std::uint64_t product = 1;
  bool is_empty = false;
  for (const std::int64_t dim : shape) {
    constexpr std::uint64_t most = std::uint64_t{1} << 56;
    if (dim < 0 || shape.size() > 64 || (dim > 0 && product > most / static_cast<std::uint64_t>(dim)))
      throw UserError(fmt::format("{} has the shape {}", owner, shape_to_string(shape)), "import_file",
                      "the file is damaged");
    is_empty = is_empty || dim == 0;
    product *= dim > 0 ? static_cast<std::uint64_t>(dim) : 1;
  }
  return is_empty ? 0 : product;
}

HostTensor mapped_tensor(DType dtype, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes,
                         const std::shared_ptr<const MappedFile>& file) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (dtype != boolean && !bytes.empty() && address % size_in_bytes(dtype) == 0) {
    // The pages are writable and private to the process.
    std::byte* const data = file->bytes().data() + (bytes.data() - file->bytes().data());
    return HostTensor::borrow_private(dtype, shape, data, file);
  }
  HostTensor tensor(dtype, shape);
  if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  if (dtype == boolean)
    for (std::byte& element : std::span(tensor.data(), tensor.bytes())) element = std::byte(element != std::byte(0));
  return tensor;
}

}  // namespace lathe::importing
