#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/support/location.h"

namespace lathe::jinja {

/// Bytes [begin, end) of a template's text.
struct Extent {
  std::size_t begin = 0, end = 0;
};

/// Text of a template, with line ends normalized as in Jinja.
class Source {
 public:
  /// Throws ParseError if the text is not UTF-8.
  Source(std::string_view text, std::string_view name);

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }
  /// Returns the one-based line number.
  int line_of(std::size_t at) const;
  Location location(Extent extent) const { return {name_, line_of(extent.begin)}; }
  /// Returns the source text for messages: on one line, truncated if it is long.
  std::string quote(Extent extent) const;
  /// Throws ParseError at a byte of the text.
  [[noreturn]] void fail(std::size_t at, std::string_view message, std::string_view hint = {}) const;

 private:
  std::string text_, name_;
};

}  // namespace lathe::jinja
