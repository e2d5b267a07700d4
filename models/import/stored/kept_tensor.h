#pragma once

#include <string>

#include "models/import/import.h"
#include "models/import/imported_value.h"

namespace lathe::importing {

/// Kinds of values that persist between runs.
enum class Kept { parameter, state };

/// Returns a tensor of a file that becomes a parameter or a state of the imported graph at its first use. Its values
/// then join the imported parameters, without a copy. `imported` must outlive the value.
Value kept_tensor(ImportedGraph& imported, const Location& location, const std::string& name, HostTensor tensor,
                  Kept kept);

/// Returns the shape of a tensor.
Shape shape_of(const HostTensor& tensor);

}  // namespace lathe::importing
