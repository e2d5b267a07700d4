#pragma once

#include <optional>
#include <string>
#include <string_view>
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

 private:
  ParseLimits limits_;
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

}  // namespace lathe::ir::detail
