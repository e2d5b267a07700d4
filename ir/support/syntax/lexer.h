#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// The lexical structure shared by the texts of the tensor IR and the kernel IR.
namespace lathe::syntax {

/// The tokens of IR text. Comments run from // to the end of the line.
enum class TokenKind {
  word,         ///< n_seq, softmax, encoder.0.W_q; contains no ".."
  integer,      ///< 12
  real,         ///< 0.5, 1e-5
  text,         ///< "..."; `value` is unescaped
  value,        ///< %x, %12, %"odd name"; `value` is the name
  graph_name,   ///< @mha, @"odd name"
  punctuation,  ///< ( ) [ ] { } , : ; = == <= <- += + - * ^ ..
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view spelling;  ///< as written; empty at the end
  std::string value;          ///< content of a text, value or graph_name
  bool was_quoted = false;    ///< %"1" is a name, %1 an id
  std::size_t offset = 0;
  int line = 1;

  bool is(std::string_view punctuation_mark) const {
    return kind == TokenKind::punctuation && spelling == punctuation_mark;
  }
  bool is_word(std::string_view word) const { return kind == TokenKind::word && spelling == word; }
};

/// A named text, with positions for errors.
class Source {
 public:
  Source(std::string_view text, std::string_view file) : text_(text), file_(file) {}
  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }

  struct LineColumn {
    int line, column;  ///< from 1; columns count bytes
  };
  LineColumn line_column(std::size_t offset) const;

  /// Throws ParseError for bytes offset .. offset+length, with a hint and the source line with carets.
  [[noreturn]] void fail(std::size_t offset, std::size_t length, std::string_view message,
                         std::string_view hint = {}) const;

 private:
  std::string_view text_;
  std::string file_;
};

/// Splits text into tokens, one at a time.
class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source) {}
  /// Returns the next token, or `end` after the last. Throws ParseError for a byte or a quote that starts no token.
  Token next();

 private:
  void skip_space();
  bool in_word() const;  ///< whether the next byte continues a word
  Token number();
  Token sigiled_name();
  std::string quoted_text();
  Token finish(TokenKind kind, std::size_t start) const;
  char at(std::size_t i) const { return i < source_.text().size() ? source_.text()[i] : '\0'; }

  const Source& source_;
  std::size_t pos_ = 0;
  int line_ = 1;
};

}  // namespace lathe::syntax
