#include <fmt/core.h>

#include <charconv>
#include <limits>

#include "ir/support/nearest.h"
#include "ir/tensor/text/parser_detail.h"

namespace lathe::ir::detail {

namespace {

std::string dtype_names() {
  std::string names;
  for (const DType dtype : all_dtypes) names += (names.empty() ? "" : ", ") + std::string(name(dtype));
  return names;
}

DType parse_dtype(GraphTokens& in) {
  const Token token = in.peek();
  const auto dtype = token.kind == TokenKind::word ? lathe::parse_dtype(token.spelling) : std::nullopt;
  if (!dtype) in.fail_expected("a dtype", "the dtypes are " + dtype_names());
  in.take();
  return *dtype;
}

Dim parse_sum(GraphTokens& in, int depth);

/// number | name | ( sum )
Dim parse_factor(GraphTokens& in, int depth) {
  if (in.peek().is("(")) {
    const Token open = in.take();
    if (depth >= in.limits().nesting)
      in.fail(open, fmt::format("parentheses are nested more than {} deep", in.limits().nesting));
    const Dim inner = parse_sum(in, depth + 1);
    in.expect(")");
    return inner;
  }
  if (in.peek().kind == TokenKind::integer) return Dim(parse_integer(in));
  return Dim(in.expect(TokenKind::word, "a dim (a name, a number or an expression of them)").spelling);
}

/// factor * factor * ...
Dim parse_product(GraphTokens& in, int depth) {
  Dim product = parse_factor(in, depth);
  while (in.accept("*")) product = product * parse_factor(in, depth);
  return product;
}

/// [-] product +- product ...
Dim parse_sum(GraphTokens& in, int depth) {
  Dim sum = in.accept("-") ? Dim(-1) * parse_product(in, depth) : parse_product(in, depth);
  for (;;) {
    if (in.accept("+"))
      sum = sum + parse_product(in, depth);
    else if (in.accept("-"))
      sum = sum - parse_product(in, depth);
    else
      return sum;
  }
}

/// [ item, item, ... ] with at most `limit` items.
template <class Item>
void parse_list(GraphTokens& in, std::size_t limit, std::string_view what, Item&& item) {
  const Token open = in.expect("[");
  if (in.accept("]")) return;
  for (std::size_t count = 1;; ++count) {
    if (count > limit) in.fail(open, fmt::format("more than {} {}", limit, what));
    item();
    if (in.accept("]")) return;
    if (!in.accept(",")) in.fail_expected("',' or ']'");
  }
}

Attribute parse_attribute(GraphTokens& in, AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean:
      if (in.accept_word("true")) return true;
      if (in.accept_word("false")) return false;
      in.fail_expected("true or false");
    case AttrKind::integer: return parse_integer(in);
    case AttrKind::real: return parse_real(in);
    case AttrKind::text: return in.expect(TokenKind::text, "a text in double quotes").value;
    case AttrKind::dtype: return parse_dtype(in);
    case AttrKind::dim: return parse_dim(in);
    case AttrKind::integers: {
      std::vector<std::int64_t> items;
      parse_list(in, in.limits().list_items, "numbers", [&] { items.push_back(parse_integer(in)); });
      return items;
    }
    case AttrKind::reals: {
      std::vector<double> items;
      parse_list(in, in.limits().list_items, "numbers", [&] { items.push_back(parse_real(in)); });
      return items;
    }
    case AttrKind::shape: return parse_shape(in);
    case AttrKind::number: return parse_number(in);
    case AttrKind::numbers: {
      NumberList items;
      parse_list(in, in.limits().list_items, "numbers", [&] { items.push_back(parse_number(in)); });
      return items;
    }
    case AttrKind::body: {
      const Token name = in.expect(TokenKind::graph_name, "the name of a body, such as @step");
      const auto found = in.bodies().find(name.value);
      if (found == in.bodies().end())
        in.fail(name, fmt::format("there is no body {} above this line", name.spelling),
                "a body is defined in the graph before its first loop: body @step(...) { ... }");
      return found->second;
    }
  }
  throw InternalError("an attribute kind out of range");
}

const AttrSpec& find_spec(GraphTokens& in, const Op& op, const Token& name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const AttrSpec& spec : op.attrs.value) {
    if (spec.name == name.spelling) return spec;
    names.push_back(spec.name);
    list += (list.empty() ? "" : ", ") + std::string(spec.name);
  }
  const std::string guess = did_you_mean(name.spelling, names);
  in.fail(name, fmt::format("{} has no attribute '{}'", op.name.value, name.spelling),
          !guess.empty() ? guess
          : list.empty() ? fmt::format("{} has no attributes", op.name.value)
                         : fmt::format("its attributes are {}", list));
}

}  // namespace

Dim parse_dim(GraphTokens& in) {
  const Token first = in.peek();
  try {
    Dim dim = parse_sum(in, 0);
    if (!in.peek().is("=")) return dim;
    if (dim.name().empty() || dim.name() != first.spelling)
      in.fail_expected("',' or ']'", "an alias reads name=size");
    in.take();
    return Dim(first.spelling, parse_sum(in, 0));
  } catch (const UserError& e) {
    throw e.with_note(fmt::format("in {}:{}", in.source().file(), first.line));
  }
}

Shape parse_shape(GraphTokens& in) {
  Shape shape;
  parse_list(in, static_cast<std::size_t>(in.limits().rank), "dims", [&] { shape.push_back(parse_dim(in)); });
  return shape;
}

WrittenType parse_type(GraphTokens& in) {
  WrittenType type;
  type.first = in.peek();
  type.dtype = parse_dtype(in);
  type.shape = parse_shape(in);
  type.strided = in.accept_word("strided");
  if (!type.strided || !in.accept("(")) return type;
  type.strides.emplace();
  while (!in.accept(")")) {
    if (!type.strides->empty()) in.expect(",");
    if (type.strides->size() > static_cast<std::size_t>(type.shape.rank()))
      in.fail(type.first, "there are more strides than dims");
    type.strides->push_back(parse_dim(in));
  }
  return type;
}

Attributes parse_attributes(GraphTokens& in, const Op& op) {
  Attributes attributes;
  if (!in.accept("{")) return attributes;
  for (;;) {
    const Token name = in.expect(TokenKind::word, "the name of an attribute");
    const AttrSpec& spec = find_spec(in, op, name);
    if (attributes.find(spec.name)) in.fail(name, fmt::format("the attribute {} is given twice", spec.name));
    in.expect("=");
    attributes.set(spec.name, parse_attribute(in, spec.kind));
    if (in.accept("}")) return attributes;
    if (!in.accept(",")) in.fail_expected("',' or '}'");
  }
}

std::optional<Location> parse_location(GraphTokens& in) {
  if (!in.accept_word("loc")) return std::nullopt;
  in.expect("(");
  const bool gradient = in.accept_word("gradient");
  Location loc;
  if (!in.accept_word("unknown")) {
    const Token file = in.expect(TokenKind::text, "a file name in double quotes, or unknown");
    std::int64_t line = 0;  // a node of an imported graph
    if (in.accept(":")) {
      const Token number = in.peek();
      line = parse_integer(in);
      if (line < std::numeric_limits<int>::min() || line > std::numeric_limits<int>::max())
        in.fail(number, "the line number is out of range");
    }
    std::string scope;
    if (in.accept_word("in")) scope = in.expect(TokenKind::text, "a scope in double quotes").value;
    loc = Location(file.value, static_cast<int>(line), scope);
  }
  in.expect(")");
  return gradient ? loc.as_gradient() : loc;
}

WrittenCheck parse_check(GraphTokens& in) {
  const Token first = in.expect_word("check");
  DimCheck check{parse_dim(in), 0, DimCheck::Relation::equal, {}, {}, {}, {}};
  if (in.accept("<="))
    check.relation = DimCheck::Relation::at_most;
  else if (!in.accept("=="))
    in.fail_expected("'==' or '<='");
  check.right = parse_dim(in);
  const auto word = [&](std::string_view what) {
    return in.peek().kind == TokenKind::text ? in.take().value
                                             : std::string(in.expect(TokenKind::word, what).spelling);
  };
  in.expect(":");
  check.op = word("the op that needs this");
  in.expect("[");
  check.label = word("the label of the constraint");
  in.expect("]");
  check.message = in.expect(TokenKind::text, "the message in double quotes").value;
  const std::optional<Location> loc = parse_location(in);
  check.loc = loc.value_or(Location(in.source().file(), first.line));
  return {std::move(check), loc.has_value()};
}

}  // namespace lathe::ir::detail
