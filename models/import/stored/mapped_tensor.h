#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "runtime/files/mapped_file.h"

namespace lathe::importing {

/// Returns the number of elements of a shape in a file. Throws UserError [import_file] for a shape that no tensor
/// has; `owner` is named in the error: "model.onnx: the tensor 'w'".
std::uint64_t numel(const std::vector<std::int64_t>& shape, const std::string& owner);

/// Returns a tensor over bytes of a mapped file, or a copy if they are not aligned. Bytes of a bool other than 0 are
/// true. There must be as many bytes as the elements have.
HostTensor mapped_tensor(DType dtype, const std::vector<std::int64_t>& shape, std::span<const std::byte> bytes,
                         const std::shared_ptr<const MappedFile>& file);

}  // namespace lathe::importing
