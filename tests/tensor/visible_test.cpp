#include "ir/support/visible.h"

#include <catch2/catch.hpp>

using namespace lathe;
using namespace std::string_literals;

TEST_CASE("untrusted text prints on one line, without terminal control sequences", "[support]") {
  CHECK(visible("W_q, größe, 日本, 🙂 \"x\" \\") == "W_q, größe, 日本, 🙂 \"x\" \\");
  CHECK(visible("a\nb\tc\rd") == "a\\nb\\tc\\x0dd");
  CHECK(visible("\x1b[31mred\x07\x7f") == "\\x1b[31mred\\x07\\x7f");
  CHECK(visible("\0z"s) == "\\x00z");
  CHECK(visible("\u009b31m") == "\\xc2\\x9b31m");  // a control sequence as one character
  CHECK(visible("\x9b"
                "31m") == "\\x9b31m");  // and as one byte
  CHECK(visible("a\u202eb\u2066") == "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6");
  CHECK(visible("a\u2028b\u0085") == "a\\xe2\\x80\\xa8b\\xc2\\x85");
  SECTION("invalid UTF-8 prints byte by byte") {
    CHECK(visible("\xc3(") == "\\xc3(");
    CHECK(visible("\xe2\x80") == "\\xe2\\x80");
    CHECK(visible("\xc0\xaf") == "\\xc0\\xaf");                    // overlong encoding of '/'
    CHECK(visible("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // half a surrogate pair
    CHECK(visible("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
    CHECK(visible("\xff"
                  "a") ==
          "\\xff"
          "a");
  }
}

TEST_CASE("multi-line text keeps its lines", "[support]") {
  CHECK(visible_lines("a\n\tb\r\x1b") == "a\n\tb\\x0d\\x1b");
  CHECK(visible_lines("ä\n") == "ä\n");
}

TEST_CASE("the length of the first character", "[support]") {
  const auto first = [](std::string_view text) {
    const Character character = first_character(text);
    return std::pair(character.bytes, character.hidden);
  };
  CHECK(first("ab") == std::pair<std::size_t, bool>(1, false));
  CHECK(first("äb") == std::pair<std::size_t, bool>(2, false));
  CHECK(first("\nb") == std::pair<std::size_t, bool>(1, true));
  CHECK(first("\u009b") == std::pair<std::size_t, bool>(2, true));
  CHECK(first("\u202e.") == std::pair<std::size_t, bool>(3, true));
  CHECK(first("\xff\xff") == std::pair<std::size_t, bool>(1, true));
}
