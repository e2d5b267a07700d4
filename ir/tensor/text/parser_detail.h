#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/support/syntax/token_stream.h"
#include "ir/tensor/op/attribute.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"

/// The parser below statements: dims, types, attributes, locations.
namespace lathe::ir::detail {

using syntax::Source;
using syntax::Token;
using syntax::TokenKind;

/// The tokens of a graph's text, with the parser's limits.
class GraphTokens : public syntax::TokenStream {
 public:
  GraphTokens(const Source& source, const ParseLimits& limits) : TokenStream(source), limits_(limits) {}
  const ParseLimits& limits() const { return limits_; }
  /// The bodies by name that the graph around the next token has so far.
  std::map<std::string, Body>& bodies() { return bodies_; }

 private:
  ParseLimits limits_;
  std::map<std::string, Body> bodies_;
};

Dim parse_dim(GraphTokens& in);
Shape parse_shape(GraphTokens& in);

/// A type as written; `strides` is set if `strided(...)` lists them.
struct WrittenType {
  DType dtype = f32;
  Shape shape;
  bool strided = false;
  std::optional<std::vector<Dim>> strides;
  Token first;
};
WrittenType parse_type(GraphTokens& in);

/// Parses `{a=1, b=[2]}` or nothing, by the op's schema.
Attributes parse_attributes(GraphTokens& in, const Op& op);

/// Parses `loc(...)` or nothing.
std::optional<Location> parse_location(GraphTokens& in);

/// A check as written; `located` if it has its own loc(...), otherwise it is located at its line of the text.
struct WrittenCheck {
  DimCheck check;
  bool located;
};
/// Parses `check n == m : matmul [matmul_inner] "message" [loc(...)]`.
WrittenCheck parse_check(GraphTokens& in);

/// A graph as written, with the id of each label.
struct LabelledGraph {
  Graph graph;
  std::unordered_map<std::string, ValueId> ids;  ///< by label_key

  /// Returns the value of a token, or an invalid id.
  ValueId find(const Token& label) const;
};
/// Distinguishes ids from names: %"1" is not %1.
std::string label_key(const Token& label);
/// Parses a graph up to its '}', which may be followed by more text. In contrast to parse_graph, equal values remain
/// separate nodes, dims keep the names of the written types, and the only checks are the written ones. If the labels
/// of computed values are positions in Graph::nodes (position_labels), values get these positions, and arguments the
/// others.
LabelledGraph parse_written_graph(GraphTokens& in);

}  // namespace lathe::ir::detail
