#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/support/syntax/quoted.h"
#include "ir/tensor/node_map.h"

namespace lathe::ir {

struct PrintOptions {
  bool locations = true;  ///< loc("mha.cpp":14) after every value; without it, the parser uses the text's own lines
  bool strides = false;   ///< the element strides of strided values: `strided(512*n_seq, 64, 512, 1)`
  bool checks = true;     ///< the run-time dim checks
};

/// Returns the text of a graph, as defined in docs/ir.md. With the default options, parse_graph(print(g)) equals g.
/// Ids number computed values from 1, so equal graphs have equal text. Each line depends only on its own node, which
/// helps `diff`.
///
///     graph @mha(input %x: f32[n, d=512]) {
///       %1 = softmax %x {dim=-1}                  : f32[n, d=512]  name("weights")  loc("mha.cpp":14)
///       output "y" %1
///     }
std::string print(const Graph& graph, const PrintOptions& options = {});

/// Returns the line of one value, without indentation.
std::string print_node(const Graph& graph, ValueId id, const PrintOptions& options = {});

/// Same, with precomputed value_labels(graph), for many lines of one graph.
std::string print_node(const Graph& graph, ValueId id, const NodeMap<std::string>& labels,
                       const PrintOptions& options);

/// Returns the label of each value: "%x" for an argument, "%12" for the twelfth computed value.
NodeMap<std::string> value_labels(const Graph& graph);
std::string value_label(const Graph& graph, ValueId id);

/// Pieces of the text.
std::string print_attribute(const Attribute& attribute);  ///< of a body the name: "@step"
std::string print_whole(const Attribute& attribute);      ///< of a body all of its text, without locations
std::string print_type(const TensorType& type, bool strides = false);  ///< "f32[n, h=8] strided"
std::string print_location(const Location& loc);  ///< loc(gradient "mha.cpp":14 in "encoder.0"), loc(unknown)
std::string print_real(double value);  ///< the shortest text that reads back: "0.1", "1.0", "-1e9", "inf", "nan"
std::string print_number(const Number& number);  ///< same; large integers in full
using syntax::quoted;
using syntax::sigiled;

/// Returns whether the attribute equals its default.
bool is_default(const Op& op, std::string_view attribute, const Attribute& value);

}  // namespace lathe::ir
