#include <fmt/core.h>

#include "ir/tensor/text/parser_detail.h"

namespace lathe::ir::detail {

namespace {

std::string describe(const Token& token) {
  constexpr std::size_t longest = 40;
  if (token.kind == TokenKind::end) return "the end of the text";
  if (token.spelling.size() > longest) return fmt::format("'{}...'", token.spelling.substr(0, longest));
  return fmt::format("'{}'", token.spelling);
}

}  // namespace

Token TokenStream::take() {
  last_end_ = token_.offset + token_.spelling.size();
  Token taken = std::move(token_);
  token_ = lexer_.next();
  return taken;
}

bool TokenStream::accept(std::string_view punctuation) {
  if (!token_.is(punctuation)) return false;
  take();
  return true;
}

bool TokenStream::accept_word(std::string_view word) {
  if (!token_.is_word(word)) return false;
  take();
  return true;
}

Token TokenStream::expect(std::string_view punctuation) {
  if (!token_.is(punctuation)) fail_expected(fmt::format("'{}'", punctuation));
  return take();
}

Token TokenStream::expect_word(std::string_view word) {
  if (!token_.is_word(word)) fail_expected(fmt::format("'{}'", word));
  return take();
}

Token TokenStream::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) fail_expected(what);
  return take();
}

void TokenStream::fail_expected(std::string_view what, std::string_view hint) const {
  fail(token_, fmt::format("expected {}, found {}", what, describe(token_)), hint);
}

void TokenStream::fail(const Token& at, std::string_view message, std::string_view hint) const {
  source_.fail(at.offset, at.spelling.size(), message, hint);
}

void TokenStream::fail_since(const Token& first, std::string_view message, std::string_view hint) const {
  source_.fail(first.offset, std::max(last_end_, first.offset + 1) - first.offset, message, hint);
}

}  // namespace lathe::ir::detail
