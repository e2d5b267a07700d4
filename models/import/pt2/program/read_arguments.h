#pragma once

#include "models/import/pt2/program/exported_program.h"
#include "models/import/pt2/program/json_fields.h"

namespace lathe::pt2 {

/// Read parts of the format from its JSON.
Argument read_argument(const JsonFields& json);
GraphPart read_graph(const JsonFields& json);
TensorMeta read_tensor_meta(const JsonFields& json);
/// Reads {"name": ..}, a reference to a tensor.
std::string read_name(const JsonFields& json);

}  // namespace lathe::pt2
