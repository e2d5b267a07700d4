#include "ir/kernel/text/kernel_reader.h"

#include <bit>
#include <charconv>
#include <limits>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/support/nearest.h"

namespace lathe::kernel {

using syntax::Token;
using syntax::TokenKind;

namespace {

constexpr int most_lanes = 64;

/// Returns the name that a token defines or uses. Values of statements keep their %, so that %n and the dim n differ.
std::string text_of(const Token& token) {
  if (token.kind == TokenKind::value) return "%" + token.value;
  return token.kind == TokenKind::text ? token.value : std::string(token.spelling);
}

/// Returns the number of lanes of a type's text after the dtype: "x16", or nothing for a scalar; 0 if it is invalid.
int lanes_of(std::string_view text) {
  if (text.empty()) return 1;
  int lanes = 0;
  const auto [stop, error] = std::from_chars(text.data() + 1, text.data() + text.size(), lanes);
  const bool valid = error == std::errc() && stop == text.data() + text.size() && lanes > 1 && lanes <= most_lanes &&
                     std::has_single_bit(static_cast<unsigned>(lanes)) && text[1] != '0';
  return valid ? lanes : 0;
}

}  // namespace

void KernelReader::expect(std::string_view token) {
  if (!accept(token)) in.fail_expected(fmt::format("'{}'", token));
}

bool KernelReader::accept(std::string_view token) { return in.accept(token) || in.accept_word(token); }

bool KernelReader::at_access() const {
  const TokenKind kind = in.peek().kind;
  return (kind == TokenKind::word || kind == TokenKind::text) && in.after().is("[");
}

int KernelReader::number() {
  const Token at = in.peek();
  const std::int64_t given = parse_integer(in);
  if (given < std::numeric_limits<int>::min() || given > std::numeric_limits<int>::max())
    in.fail(at, fmt::format("the number {} does not fit 32 bits", given));
  return static_cast<int>(given);
}

Token KernelReader::name(std::string_view what) {
  if (in.peek().kind != TokenKind::word && in.peek().kind != TokenKind::text) in.fail_expected(what);
  return in.take();
}

std::string_view KernelReader::operation_name() {
  operation_ = in.expect(TokenKind::word, "an operation, such as mul or load");
  const std::string_view text = operation_.spelling;
  const std::size_t dot = std::min(text.find('.'), text.size());
  suffix_ = text.substr(std::min(dot + 1, text.size()));
  if (suffix_.empty() && dot < text.size()) in.fail(operation_, "nothing follows the dot");
  return text.substr(0, dot);
}

std::string_view KernelReader::suffix_word() { return std::exchange(suffix_, {}); }

int KernelReader::suffix() {
  const std::string_view text = suffix_word();
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    in.fail(operation_, "expected a number after the name and a dot");
  return number;
}

void KernelReader::end_suffix() const {
  if (!suffix_.empty()) in.fail(operation_, fmt::format("this operation has no variant .{}", suffix_));
}

DType KernelReader::dtype() {
  const Token at = in.peek();
  const Type read = type();
  if (read.lanes != 1) in.fail(at, fmt::format("expected a dtype, such as f32, found {}", read));
  return read.scalar;
}

Type KernelReader::type() {
  const Token token = in.peek();
  const std::string_view text = token.spelling;
  const std::size_t end = std::min(text.find('x'), text.size());
  const auto dtype = token.kind == TokenKind::word ? parse_dtype(text.substr(0, end)) : std::nullopt;
  if (!dtype) in.fail_expected("a type, such as f32 or f32x16");
  in.take();
  const int lanes = lanes_of(text.substr(end));
  if (lanes == 0) in.fail(token, "a vector has 2, 4, 8, 16, 32 or 64 lanes");
  return {*dtype, lanes};
}

ValueId KernelReader::value() { return at_constant() ? constant() : find_value(); }

bool KernelReader::at_constant() const {
  const Token& next = in.peek();
  if (next.kind == TokenKind::integer || next.kind == TokenKind::real || next.is("-")) return true;
  const bool word = next.is_word("inf") || next.is_word("nan") || next.is_word("true") || next.is_word("false");
  if (!word) return false;
  const Token colon = in.after();
  return colon.is(":") && colon.offset == next.offset + next.spelling.size();
}

/// A type follows its constant without a space: `1:f32`. In `add n, 1 : i64` it is that of the sum.
Type KernelReader::constant_type() {
  if (!in.peek().is(":") || !in.adjacent()) return {i64, 1};
  in.take();
  return type();
}

ValueId KernelReader::constant() {
  const Token first = in.peek();
  lathe::Number number;
  const bool is_bool = first.is_word("true") || first.is_word("false");
  if (is_bool)
    number = in.take().is_word("true") ? 1 : 0;
  else
    number = parse_number(in);
  const Type type = constant_type();
  Instruction made{.op = Opcode::constant, .type = type};
  if (is_float(type.scalar) && !is_bool)
    made.real = round_to(type.scalar, number.real());
  else if (!is_complex(type.scalar) && number.is_i64() &&
           wrap_to(type.scalar, number.integer()) == number.integer() && (!is_bool || type.scalar == boolean))
    made.integer = number.integer();
  else
    in.fail_since(first, fmt::format("this constant is no {}", type));
  const auto key = std::tuple(type.scalar, type.lanes, made.integer, std::bit_cast<std::uint64_t>(made.real));
  const auto [entry, is_new] = constants_.try_emplace(key, none);
  if (is_new) entry->second = add_value(std::move(made));
  return entry->second;
}

ValueId KernelReader::find_value() {
  const Token& next = in.peek();
  if (next.kind != TokenKind::value && next.kind != TokenKind::word && next.kind != TokenKind::text)
    in.fail_expected("a value, such as %0, n or 0.5:f32");
  const Token token = in.take();
  return find(values_, text_of(token), token, "value");
}

BufferId KernelReader::buffer() {
  const Token token = name("the name of a buffer");
  return find(buffers_, text_of(token), token, "buffer");
}

VarId KernelReader::var() {
  const Token token = name("the name of a variable");
  return find(vars_, text_of(token), token, "variable");
}

int KernelReader::map() {
  const Token token = in.expect(TokenKind::word, "the name of a map, such as m0");
  for (std::size_t i = 0; i < kernel.maps.size(); ++i)
    if (token.spelling == fmt::format("m{}", i)) return static_cast<int>(i);
  in.fail(token, fmt::format("there is no map {}", token.spelling), "maps are m0, m1, ... at the kernel's start");
}

int KernelReader::find(const NameScope& scope, const std::string& name, const Token& at,
                       std::string_view what) const {
  if (const auto id = scope.find(name)) return *id;
  const std::string guess = did_you_mean(name, scope.names());
  in.fail(at, fmt::format("there is no {} {} here", what, at.spelling),
          guess.empty() ? fmt::format("a {} is visible in its block and in nested blocks", what) : guess);
}

void KernelReader::define(NameScope& scope, const Token& name, int id) const {
  if (!scope.define(text_of(name), id))
    in.fail(name, fmt::format("{} is defined already", name.spelling), "rename this one");
}

ValueId KernelReader::add_value(Instruction instruction) {
  kernel.values.push_back(std::move(instruction));
  return static_cast<ValueId>(kernel.values.size()) - 1;
}

ValueId KernelReader::define_value(const Token& name, Instruction instruction) {
  const ValueId id = add_value(std::move(instruction));
  define(values_, name, id);
  return id;
}

ValueId KernelReader::index() {
  return define_value(name("the name of an index, such as i0"), {.op = Opcode::loop_index, .type = {i64, 1}});
}

void KernelReader::define_buffer(const Token& name, BufferInfo info) {
  define(buffers_, name, static_cast<BufferId>(kernel.buffers.size()));
  info.name = text_of(name);
  kernel.buffers.push_back(std::move(info));
}

VarId KernelReader::define_var(const Token& name, Type type) {
  const auto id = static_cast<VarId>(kernel.vars.size());
  define(vars_, name, id);
  kernel.vars.push_back({type});
  return id;
}

void KernelReader::define_dim(const Token& name) {
  const auto number = static_cast<std::int64_t>(kernel.dims.size());
  define_value(name, {.op = Opcode::dim, .type = {i64, 1}, .integer = number});
  kernel.dims.push_back(text_of(name));
}

}  // namespace lathe::kernel
