#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/support/location.h"
#include "ir/support/tensors/host_tensor.h"

namespace lathe::importing {

/// An attribute of a node, of any format.
using SourceAttribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                                     std::vector<double>, std::vector<std::string>, HostTensor>;

/// Returns the kind of an attribute for messages: "an integer", "a list of numbers".
std::string_view kind_name(const SourceAttribute& attribute);

/// A node of a source graph, without its operands.
struct SourceNode {
  std::string op;            ///< "MatMul"
  std::int64_t version = 0;  ///< of the op's domain
  Location location = {};    ///< "model.onnx:/layers.0/attn/MatMul"
  std::map<std::string, SourceAttribute, std::less<>> attributes = {};
  std::vector<bool> results = {};  ///< for each result, whether it is used
  std::vector<bool> numbers = {};  ///< for each operand, whether it is a number of the program, not a tensor
};

}  // namespace lathe::importing
