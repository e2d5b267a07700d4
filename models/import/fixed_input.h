#pragma once

#include <string>

#include "ir/support/shape.h"
#include "models/import/imported_value.h"

namespace lathe::importing {

/// Returns the value of an input that is fixed at import, as a constant. Throws UserErrors [argument_dtype] and
/// [argument_shape] if it does not have the type of the input in the file.
Value fixed_input(const HostTensor& value, const std::string& input, const std::string& file, DType dtype,
                  const Shape& shape);

}  // namespace lathe::importing
