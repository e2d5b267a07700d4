#include "models/import/fixed_input.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::importing {

Value fixed_input(const HostTensor& value, const std::string& input, const std::string& file, DType dtype,
                  const Shape& shape) {
  const auto type = [&] { return ir::TensorType::contiguous(dtype, shape).to_string(); };
  if (value.dtype() != dtype)
    throw UserError(
        fmt::format("the input '{}' of {} is {}, and its value {}", input, file, type(), lathe::name(value.dtype())),
        "argument_dtype");
  bool fits = value.rank() == shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i)
    fits = !shape[i].value() || *shape[i].value() == value.shape()[static_cast<std::size_t>(i)];
  if (!fits)
    throw UserError(fmt::format("the input '{}' of {} is {}, and its value has the shape {}", input, file, type(),
                                shape_to_string(value.shape())),
                    "argument_shape");
  return Value::constant(value);
}

}  // namespace lathe::importing
