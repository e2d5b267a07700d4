#pragma once

#include <cstddef>
#include <string_view>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op_set.h"

namespace lathe::ir {

/// Bounds on what a text may ask for; past one the parser throws ParseError.
struct ParseLimits {
  std::size_t bytes = std::size_t{1} << 28;
  std::size_t nodes = std::size_t{1} << 20;
  std::size_t list_items = std::size_t{1} << 22;  ///< in one attribute
  int rank = 32;
  int nesting = 32;  ///< parentheses in a dim
};

/// Reads a graph from IR text (docs/ir.md). Every op is added through GraphBuilder, so an impossible program is
/// refused by the same rules, labels and hints as in the DSL. A value without loc(...) is at `file` and its line in
/// the text. Throws ParseError for the grammar, unknown names and written types that are not the inferred ones;
/// UserError for what a rule refuses, at the text's line, or at the loc(...) with a note that names the text's line.
Graph parse_graph(std::string_view text, std::string_view file = "<text>", const ParseLimits& limits = {});
/// The same for a text that may name the ops of `ops`, a program's own among them.
Graph parse_graph(std::string_view text, const OpSet& ops, std::string_view file = "<text>",
                  const ParseLimits& limits = {});

/// Reads one dim: "n_seq", "d_model=512", "2*n_seq + 1", "(n + 1)*h".
Dim parse_dim(std::string_view text, std::string_view file = "<text>");
/// Reads one type: "f32[n, h=8]". `strided` has no meaning without the op that made it, and is refused.
TensorType parse_type(std::string_view text, std::string_view file = "<text>");

}  // namespace lathe::ir
