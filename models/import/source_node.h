#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/support/location.h"
#include "ir/support/tensors/host_tensor.h"
#include "models/import/imported_value.h"
#include "models/import/past_rows.h"

namespace lathe::importing {

/// An attribute of a node, of any format.
using SourceAttribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                                     std::vector<double>, std::vector<std::string>, HostTensor>;

/// Returns the kind of an attribute for messages: "an integer", "a list of numbers".
std::string_view kind_name(const SourceAttribute& attribute);

/// A graph that an attribute of a node has, such as the body of a loop. Adds its nodes to `graph`, with values for
/// its inputs. Returns its outputs.
using SourceBody = std::function<Results(std::vector<Value> inputs, const Graph& graph)>;

/// A node of a source graph, without its operands.
struct SourceNode {
  std::string op;            ///< "MatMul"
  std::int64_t version = 0;  ///< of the op's domain
  Location location = {};    ///< "model.onnx:/layers.0/attn/MatMul"
  std::map<std::string, SourceAttribute, std::less<>> attributes = {};
  std::map<std::string, SourceBody, std::less<>> bodies = {};  ///< by the names of their attributes
  std::vector<bool> results = {};                              ///< for each result, whether it is used
  std::vector<std::size_t> groups = {};  ///< number of operands of each name, for formats with named arguments
  PastRows* past_rows = nullptr;         ///< null: the graph keeps no rows in states
  std::vector<bool> numbers = {};        ///< for each operand, whether it is a number of the program, not a tensor
};

}  // namespace lathe::importing
