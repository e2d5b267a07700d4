#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <string>

#include "ir/tensor/op/op.h"
#include "tests/support/committed_text.h"

namespace lathe::ir {

namespace {

constexpr std::string_view preamble = R"(#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "frontend/tensor.h"

/// The functions of the DSL that are no more than their op: its operands, then its attributes. [labels] are those of
/// UserErrors. The test of ops writes them, from the lines of ir/ops/primitives/primitives.def and
/// ir/ops/composites/composites.def.
namespace lathe {

namespace detail {
/// The op of this name over the operands at the user's line.
Tensor op(std::string_view name, const Where& at, std::initializer_list<const Tensor*> operands,
          ir::Attributes attrs = {});
}  // namespace detail

)";

/// Returns the text between the outer parentheses.
std::string_view inside(std::string_view text) { return text.substr(1, text.size() - 2); }

/// Converts the parameters of a function of ir/ops/functional to those of the DSL, where a bool is not a dim.
std::string dsl_parameters(std::string_view parameters) {
  std::string text(inside(parameters));
  if (const auto dim = text.find("int dim"); dim != std::string::npos) text.replace(dim, 3, "DimIndex");
  return text;
}

/// Returns a record's doc as a sentence; a doc that begins with a formula is unchanged.
std::string sentence(std::string doc) {
  const std::string word = doc.substr(0, doc.find(' '));
  const bool formula =
      word.size() == 1 || word.find('(') != std::string::npos ||
      std::string_view("*/+-").find(doc[std::min(word.size() + 1, doc.size() - 1)]) != std::string::npos;
  if (!formula) doc[0] = static_cast<char>(std::toupper(doc[0]));
  return doc + ".";
}

constexpr std::size_t line_length = 118;  // the column limit of clang-format

/// Returns the head of a function, in two lines if it is too long for one.
std::string fitting(std::string head) {
  const std::size_t brk = head.rfind(" Where at");
  if (head.size() > line_length) head.replace(brk, 1, "\n" + std::string(head.find('(') + 1, ' '));
  return head;
}

std::string comment(std::string_view name) {
  const Op& op = *find_op(name);
  std::string labels;
  for (const std::string_view label : op.labels.value)
    labels += fmt::format("{}[{}]", labels.empty() ? "" : " ", label);
  const std::string doc = "/// " + sentence(std::string(op.doc.value));
  return doc + (doc.size() + 1 + labels.size() <= line_length ? " " : "\n/// ") + labels + "\n";
}

std::string function(std::string_view name, std::initializer_list<std::string_view> operands,
                     std::string_view parameters, std::string_view attributes) {
  std::string taken, given;
  for (const std::string_view operand : operands) {
    taken += fmt::format("const Tensor& {}, ", operand);
    given += fmt::format("{}&{}", given.empty() ? "" : ", ", operand);
  }
  if (parameters != "()") taken += fmt::format("{}, ", dsl_parameters(parameters));
  if (attributes != "()") given += fmt::format("}}, {{{}", inside(attributes));
  const std::string head = fmt::format("inline Tensor {}({}Where at = Where::current()) {{", name, taken);
  const std::string body = fmt::format("return detail::op(\"{}\", at, {{{}}});", name, given);
  const bool short_text = head.size() + body.size() + 3 <= line_length;
  return fmt::format(fmt::runtime(short_text ? "{} {} }}\n" : "{}\n  {}\n}}\n"), fitting(head), body);
}

std::string plain_ops() {
  std::string text(preamble);
#define LATHE_UNARY(name, a, parameters, attributes) \
  text += comment(#name) + function(#name, {#a}, #parameters, #attributes);
#define LATHE_BINARY(name, a, b, parameters, attributes) \
  text += comment(#name) + function(#name, {#a, #b}, #parameters, #attributes);
#define LATHE_TERNARY(name, a, b, c, parameters, attributes) \
  text += comment(#name) + function(#name, {#a, #b, #c}, #parameters, #attributes);
#define LATHE_UNARY_OPTIONAL(name, a, b, parameters, attributes)             \
  text += comment(#name) + function(#name, {#a}, #parameters, #attributes) + \
          function(#name, {#a, #b}, #parameters, #attributes);
#define LATHE_BINARY_OPTIONAL(name, a, b, c, parameters, attributes)             \
  text += comment(#name) + function(#name, {#a, #b}, #parameters, #attributes) + \
          function(#name, {#a, #b, #c}, #parameters, #attributes);
#define LATHE_OPERATOR1(name, a)
#define LATHE_OPERATOR2(name, a, b)
#define LATHE_METHOD(name, a, parameters, attributes)
#include "ir/ops/ops.def"
  return text + "\n}  // namespace lathe\n";
}

}  // namespace

TEST_CASE("frontend/ops/plain_ops.h matches the op records") {
  lathe::test::check_committed("frontend/ops/plain_ops.h", plain_ops());
}

}  // namespace lathe::ir
