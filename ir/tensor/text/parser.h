#pragma once

#include <cstddef>
#include <string_view>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op_set.h"

namespace lathe::ir {

/// Limits of the parser; throws ParseError if one is exceeded.
struct ParseLimits {
  std::size_t bytes = std::size_t{1} << 28;
  std::size_t nodes = std::size_t{1} << 20;
  std::size_t list_items = std::size_t{1} << 22;  ///< per attribute
  int rank = 32;
  int nesting = 32;  ///< nested parentheses in a dim
};

/// Parses a graph from IR text (docs/ir.md). Ops are added through GraphBuilder, so invalid programs are rejected
/// with the same labels and hints as in the DSL. A value without loc(...) is located at `file` and its line in the
/// text. Throws ParseError for syntax errors, unknown names, and written types that differ from the inferred ones.
/// Throws UserError for violated rules, at the text's line, or at the loc(...) with a note that names the text's
/// line.
Graph parse_graph(std::string_view text, std::string_view file = "<text>", const ParseLimits& limits = {});
/// Same for text that may use the ops of `ops`, including user-defined ones.
Graph parse_graph(std::string_view text, const OpSet& ops, std::string_view file = "<text>",
                  const ParseLimits& limits = {});

/// Parses one dim: "n_seq", "d_model=512", "2*n_seq + 1", "(n + 1)*h".
Dim parse_dim(std::string_view text, std::string_view file = "<text>");
/// Parses one type: "f32[n, h=8]". Rejects `strided`, which has no meaning without its op.
TensorType parse_type(std::string_view text, std::string_view file = "<text>");

}  // namespace lathe::ir
