#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "ir/tensor/builder.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;

namespace {

/// Returns programs that use each sample of every op once, printed by hand.
std::vector<std::string> seeds() {
  std::vector<std::string> programs{std::string(ir::test::attention_text)};
  for (const Op* record : all_ops()) {
    if (record->as<Argument>()) continue;
    for (const Sample& sample : record->samples.value()) {
      GraphBuilder b("g");
      std::vector<Value> operands;
      for (const SampleOperand& operand : sample.operands) {
        std::vector<Dim> dims(operand.sizes.begin(), operand.sizes.end());
        operands.push_back(
            b.argument(ir::test::op("input"), "x" + std::to_string(operands.size()), operand.dtype, Shape(dims)));
      }
      b.output("y", b.add(*record, operands, sample.attrs));
      programs.push_back(print(b.finish(), {.locations = false}));
    }
  }
  return programs;
}

/// Tokens that a mutation may insert.
constexpr std::string_view pieces[] = {"n",
                                       "m",
                                       "-1",
                                       "0",
                                       "1",
                                       "2",
                                       "8",
                                       "-9223372036854775808",
                                       "9223372036854775807",
                                       "4611686018427387904",
                                       "nan",
                                       "inf",
                                       "-inf",
                                       "1e308",
                                       "0.5",
                                       "%x",
                                       "%x0",
                                       "%1",
                                       "%2",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "(",
                                       ")",
                                       ",",
                                       ":",
                                       "=",
                                       "==",
                                       "<=",
                                       "<-",
                                       "\"",
                                       "\"\"",
                                       "\"ab,bc->ac\"",
                                       "\"...\"",
                                       "*",
                                       "+",
                                       "-",
                                       "f64",
                                       "f32",
                                       "bool",
                                       "c64",
                                       "i32",
                                       "i64",
                                       " strided",
                                       "loc(unknown)",
                                       "name(\"q\")",
                                       "check ",
                                       "update ",
                                       "output ",
                                       "true",
                                       "false",
                                       "h=8",
                                       "n*n",
                                       "[]",
                                       "[n, m]",
                                       "[0]",
                                       "[-1]",
                                       "[1, 1, 1, 1, 1, 1]",
                                       "\n",
                                       "//",
                                       "dim",
                                       "shape",
                                       "\x80",
                                       "\0"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  std::string mutate(std::string text, const std::vector<std::string>& others) {
    for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(text.size() - at, 1 + below(8));
      switch (below(14)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, pieces[below(std::size(pieces))]); break;
        case 3: text.replace(at, length, pieces[below(std::size(pieces))]); break;
        case 4: text.insert(at, text.substr(below(text.size()), 1 + below(40))); break;
        case 5: replace_token(text, at, std::string(pieces[below(std::size(pieces))])); break;
        case 6: replace_token(text, at, token_of(others[below(others.size())])); break;
        default: replace_number(text, at); break;
      }
    }
    return text;
  }

 private:
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

  /// Replaces the word around `at`: mutants that still parse reach the shape rules.
  void replace_token(std::string& text, std::size_t at, const std::string& with) {
    std::size_t first = at, last = at;
    while (first > 0 && is_word(text[first - 1])) --first;
    while (last < text.size() && is_word(text[last])) ++last;
    text.replace(first, std::max<std::size_t>(1, last - first), with);
  }

  /// Replaces the next number from `at` on with another number or a dim: such mutants usually parse.
  void replace_number(std::string& text, std::size_t at) {
    static constexpr std::string_view numbers[] = {"0", "1", "2", "3", "4", "6", "7", "24", "n", "4096"};
    const auto digit = [&](std::size_t i) { return std::isdigit(static_cast<unsigned char>(text[i])) != 0; };
    while (at < text.size() && (!digit(at) || is_word(text[at - (at > 0)]))) ++at;
    std::size_t last = at;
    while (last < text.size() && digit(last)) ++last;
    if (at < text.size()) text.replace(at, last - at, numbers[below(std::size(numbers))]);
  }

  std::string token_of(const std::string& text) {
    std::size_t first = below(text.size()), last = first;
    while (first > 0 && is_word(text[first - 1])) --first;
    while (last < text.size() && is_word(text[last])) ++last;
    return text.substr(first, std::max<std::size_t>(1, last - first));
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("mutated programs parse or raise a user error, and parsed graphs are valid and round-trip", "[fuzz]") {
  const std::vector<std::string> programs = seeds();
  Mutator mutator(20240607);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutator.mutate(programs[mutator.below(programs.size())], programs);
    try {
      const Graph graph = parse_graph(text, "fuzz.lathe");
      ++parsed;
      const std::string printed = print(graph);
      const auto defect = find_defect(graph);
      const bool same = print(parse_graph(printed)) == printed;
      if (defect || !same) {
        INFO(text);
        CHECK(defect.value_or("sound") == "sound");
        CHECK(print(parse_graph(printed)) == printed);
      }
    } catch (const ParseError&) {
    } catch (const UserError& e) {
      if (e.label().empty()) FAIL_CHECK("an error without a label: " << e.what());
    } catch (const std::exception& e) {
      FAIL_CHECK("for the text\n" << text << "\n" << e.what());
    }
  }
  CHECK(parsed > 800);  // about 5 in 100, which changes with every new op
}

TEST_CASE("random bytes and random tokens raise ParseError", "[fuzz]") {
  Mutator mutator(5);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t length = mutator.below(60); length > 0; --length) text += static_cast<char>(mutator.below(256));
    CHECK_THROWS_AS(parse_graph(text), ParseError);
    CHECK_THROWS_AS(parse_graph("graph @g() {" + text), ParseError);
  }
}
