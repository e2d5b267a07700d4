#include <catch2/catch.hpp>

#include <fmt/core.h>

#include <random>

#include "ir/kernel/printer.h"
#include "ir/kernel/text/parser.h"
#include "ir/kernel/verify/verifier.h"
#include "ir/support/error.h"
#include "ir/support/syntax/lexer.h"
#include "tests/support/kernels/wgmma_product.h"

/// Errors of the parser of kernels, and texts that are almost right.
using namespace lathe;
using namespace lathe::kernel;

namespace {

/// Returns "line:column: message" of the error.
std::string error_of(const std::string& text) {
  try {
    parse_kernels(text, "k");
  } catch (const ParseError& error) {
    const std::string what = error.what();
    return what.substr(2, what.find('\n') - 2);
  }
  return "none";
}

/// Same for a statement on line 3 of a kernel.
std::string error_in(const std::string& statement) {
  return error_of("kernel @k(x: read f32, y: write f32; n) {\n  alloc t: bf16[64] @shared\n" + statement + "\n}\n");
}

/// Returns the tokens, each with the space before it.
std::vector<std::string> tokens_of(const std::string& text) {
  const syntax::Source source(text, "k");
  syntax::Lexer lexer(source);
  std::vector<std::string> tokens;
  std::size_t end = 0;
  for (syntax::Token t = lexer.next(); t.kind != syntax::TokenKind::end; t = lexer.next()) {
    tokens.push_back(text.substr(end, t.offset + t.spelling.size() - end));
    end = t.offset + t.spelling.size();
  }
  return tokens;
}

/// Deletes, duplicates, swaps or replaces some tokens, and may cut the text off.
std::string mutant(std::vector<std::string> tokens, std::mt19937& random) {
  static const std::string edges[] = {"-9223372036854775808",
                                      "99999999999999999999",
                                      "1e999",
                                      "0",
                                      "64",
                                      "f32x64",
                                      "f32x3",
                                      "boolx4294967298",
                                      "nan:f32",
                                      "true:bool",
                                      "@parallel",
                                      "kernel",
                                      "\"\""};
  for (auto changes = 1 + random() % 3; changes > 0 && !tokens.empty(); --changes) {
    const auto at = static_cast<std::ptrdiff_t>(random() % tokens.size());
    const auto other = static_cast<std::ptrdiff_t>(random() % tokens.size());
    switch (random() % 6) {
      case 0: tokens.erase(tokens.begin() + at); break;
      case 1: tokens.insert(tokens.begin() + at, tokens[static_cast<std::size_t>(other)]); break;
      case 2: std::swap(tokens[static_cast<std::size_t>(at)], tokens[static_cast<std::size_t>(other)]); break;
      case 3: tokens[static_cast<std::size_t>(at)] = tokens[static_cast<std::size_t>(other)]; break;
      case 4: tokens[static_cast<std::size_t>(at)] = edges[random() % std::size(edges)]; break;
      default: tokens.resize(random() % 8 ? tokens.size() : static_cast<std::size_t>(at));
    }
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

/// Parses, prints and verifies. Returns whether it parsed.
bool survives(const std::string& text) {
  std::vector<Kernel> kernels;
  try {
    kernels = parse_kernels(text, "mutant");
  } catch (const ParseError& error) {
    CHECK(error.line() >= 1);
    return false;
  }
  for (const Kernel& kernel : kernels) {
    try {
      verify(kernel);
    } catch (const InternalError&) {  // a broken rule
    }
    const std::string printed = print(kernel);
    CHECK(print(parse_kernel(printed)) == printed);
  }
  return true;
}

}  // namespace

TEST_CASE("kernel text errors: headers") {
  CHECK(error_of("graph @g()") == "1:1: expected 'kernel', found 'graph'");
  CHECK(error_of("kernel k() {}") == "1:8: expected the kernel's name, such as @scale, found 'k'");
  CHECK(error_of("kernel @k(x: reads f32) {}") == "1:14: expected read, write or readwrite, found 'reads'");
  CHECK(error_of("kernel @k(x: read f31) {}") == "1:19: expected a type, such as f32 or f32x16, found 'f31'");
  CHECK(error_of("kernel @k(x: read f32x4) {}") == "1:19: expected a dtype, such as f32, found f32x4");
  CHECK(error_of("kernel @k(x: read f32, x: read f32) {}") == "1:24: x is defined already");
  CHECK(error_of("kernel @k(; n, n) {}") == "1:16: n is defined already");
  CHECK(error_of("kernel @k(; n,) {}") == "1:15: expected the name of a dim, found ')'");
  CHECK(error_of("kernel @k() {") == "1:14: expected a statement or '}', found the end of the text");
  CHECK(error_of("kernel @k() {}\n}") == "2:1: expected 'kernel', found '}'");
  CHECK(error_of("kernel @k() { note 3 }") == "1:20: expected a note in double quotes, found '3'");
  CHECK(error_of("kernel @k() {\n  \x01 }") == "2:3: unexpected byte 0x01");
  CHECK_THROWS_WITH(
      parse_kernel("kernel @a() {}\nkernel @b() {}"),
      Catch::StartsWith("<text>:2:1: expected the end of the text after the kernel's '}', found 'kernel'"));
}

TEST_CASE("kernel text errors: maps") {
  const auto map = [](const std::string& text) { return error_of("kernel @k(x: read bf16; n) {\n" + text + "\n}"); };
  CHECK(map("map m1 = x[0] by 64 of n") == "2:5: expected 'm0', found 'm1'");
  CHECK(map("map m0 = y[0] by 64 of n") == "2:10: there is no buffer y here");
  CHECK(map("map m0 = x[0] by 64 of n, 8 of n") == "3:1: expected 'by', found '}'");
  CHECK(map("map m0 = x[0] by 1 of n, 1 of n by n, 1 of n by n, 1 of n by n, 1 of n by n, 1 of n by n") ==
        "2:78: more than 5 dims");
}

TEST_CASE("kernel text errors: statements") {
  CHECK(error_in("stor x[0] = 1:f32") == "3:1: there is no statement stor");
  CHECK(error_in("store z[0] = 1:f32") == "3:7: there is no buffer z here");
  CHECK(error_in("store y[%1] = 1:f32") == "3:9: there is no value %1 here");
  CHECK(error_in("store y[0] 1:f32") == "3:12: expected '=', found '1'");
  CHECK(error_in("set v0 = 1:f32") == "3:5: there is no variable v0 here");
  CHECK(error_in("alloc u: f32[n] @stack") == "3:14: expected an integer, found 'n'");
  CHECK(error_in("alloc u: f32[8] @heap") == "3:17: expected @stack, @register or @shared, found '@heap'");
  CHECK(error_in("alloc u: f32[8] @parameter") == "3:17: expected @stack, @register or @shared, found @parameter");
  CHECK(error_in("for i in 0..n step 1 @fast {}") ==
        "3:22: expected the kind of the loop, such as @serial or @parallel, found '@fast'");
  CHECK(error_in("for n in 0..4 step 1 @serial {}") == "3:5: n is defined already");
  CHECK(error_in("for i in 0..4 step 1 @serial {}\ncheck i else 3") == "4:7: there is no value i here");
  CHECK(error_in("if n { var v: f32 = 1:f32 } else { set v = 2:f32 }") == "3:40: there is no variable v here");
  CHECK(error_in("check n else") == "4:1: expected an integer, found '}'");
  CHECK(error_in("stage 3 produce {} consume {}") == "3:7: expected the name of an index, such as i0, found '3'");
  CHECK(error_in("stage i0 consume {} produce {}") == "3:10: expected 'produce', found 'consume'");
  CHECK(error_in("pipeline of 4.5") == "3:13: expected an integer, found '4.5'");
  CHECK(error_in("= 3") == "3:1: expected a statement or '}', found '='");
}

TEST_CASE("kernel text errors: operations") {
  CHECK(error_in("%0 = mull n, 2 : i64") == "3:6: there is no operation mull");
  CHECK(error_in("%0 = mul n : i64") == "3:12: expected ',', found ':'");
  CHECK(error_in("%0 = mul n, : i64") == "3:13: expected a value, such as %0, n or 0.5:f32, found ':'");
  CHECK(error_in("%0 = mul n, 2:i64") == "4:1: expected ':', found '}'");
  CHECK(error_in("%0 = mul n, m : i64") == "3:13: there is no value m here");
  CHECK(error_in("%0 = mul n, 2 : i64x3") == "3:17: a vector has 2, 4, 8, 16, 32 or 64 lanes");
  CHECK(error_in("%0 = mul n, 2 : i64x128") == "3:17: a vector has 2, 4, 8, 16, 32 or 64 lanes");
  CHECK(error_in("%0 = mul n, 2 : i64\n%0 = mul n, 2 : i64") == "4:1: %0 is defined already");
  CHECK(error_in("%0 = reduce n : i64") == "3:6: a reduction names its operation");
  CHECK(error_in("%0 = reduce. n : i64") == "3:6: nothing follows the dot");
  CHECK(error_in("%0 = add.3 n, n : i64") == "3:6: this operation has no variant .3");
  CHECK(error_in("%0 = load x[n by] : f32") == "3:17: expected a value, such as %0, n or 0.5:f32, found ']'");
  CHECK(error_in("%0 = load x[n] mask n align 99999999999 : f32") ==
        "3:29: the number 99999999999 does not fit 32 bits");
  CHECK(error_in("%0 = shuffle n, n {0, 1 : i64x2") == "3:25: expected '}', found ':'");
  std::string lanes = "0";
  for (int i = 0; i < 64; ++i) lanes += ", 0";
  CHECK(error_in("%0 = shuffle n, n {" + lanes + "} : i64") == "3:19: a shuffle has at most 64 lanes");
}

TEST_CASE("kernel text errors: constants") {
  CHECK(error_in("store y[1.5] = 1:f32") == "3:9: this constant is no i64");
  CHECK(error_in("store y[99999999999999999999] = 1:f32") == "3:9: this constant is no i64");
  CHECK(error_in("store y[0] = 300:u8") == "3:14: this constant is no u8");
  CHECK(error_in("store y[0] = -1:boolx4") == "3:14: this constant is no boolx4");
  CHECK(error_in("store y[0] = true:f32") == "3:14: this constant is no f32");
  CHECK(error_in("store y[0] = true") == "3:14: there is no value true here");
  CHECK(error_in("store y[0] = nan:i32") == "3:14: this constant is no i32");
  CHECK(error_in("store y[0] = 1:c64") == "3:14: this constant is no c64");
  CHECK(error_in("store y[0] = 1e999:f64") == "3:14: the number is too large or too small for f64");
}

TEST_CASE("kernel text errors: intrinsics") {
  CHECK(error_in("%0 = commit_copies : f32") == "3:6: commit_copies has no value");
  CHECK(error_in("fast_exp 1:f32") == "3:1: fast_exp has a value");
  CHECK(error_in("%0 = split_bf16 1:f32, 2:f32 : bf16x2") == "3:6: expected a number after the name and a dot");
  CHECK(error_in("%0 = split_bf16.x 1:f32, 2:f32 : bf16x2") == "3:6: expected a number after the name and a dot");
  CHECK(error_in("copy_box t[0] = m0[0, 0]") == "3:17: there is no map m0");
  CHECK(error_in("async_copy t[0] = x") == "4:1: expected '[', found '}'");
  CHECK(error_in("%0 = mma 16 lines of t[0 by 1], 16 rows of t[0 by 1], n : f32") ==
        "3:13: expected 'rows', found 'lines'");
  const std::string boxes = "kernel @k(x: read bf16; n) {\nmap m0 = x[0] by 64 of n\n";
  CHECK(error_of(boxes + "copy_box x[0] = m0[0, 0, 0, 0, 0, 0, 0]\n}") == "3:1: copy_box takes 2 to 7 values, not 8");
}

TEST_CASE("kernel text errors: hints point at the word and suggest a name") {
  CHECK_THROWS_WITH(parse_kernel("kernel @k(xs: read f32; rows) {\n  %0 = load xs[row] : f32\n}", "k.kernel"),
                    Catch::Equals("k.kernel:2:16: there is no value row here\n"
                                  "  did you mean 'rows'?\n"
                                  "      %0 = load xs[row] : f32\n"
                                  "                   ^~~"));
  CHECK_THROWS_WITH(parse_kernel("kernel @k(x: read f32) {\n  barier\n}"),
                    Catch::Contains("did you mean 'barrier'?"));
  CHECK_THROWS_WITH(parse_kernel("kernel @k(; n) {\n  %0 = ramb n, 1 : i64x2\n}"),
                    Catch::Contains("did you mean 'ramp'?"));
}

TEST_CASE("kernel text errors: nesting is limited") {
  std::string deep = "kernel @k(; n) {\n", end;
  for (int i = 0; i < 200'000; ++i) deep += "if n {\n", end += "}";
  CHECK(error_of(deep + end + "}") == "130:1: blocks are nested more than 128 deep");
}

TEST_CASE("kernel text errors: mutants of texts parse or are rejected with a place") {
  const std::vector<std::string> tokens = tokens_of(print(test::wgmma_product({.left_boxes = true})));
  std::mt19937 random(7);
  int parsed = 0;
  for (int i = 0; i < 3000; ++i) parsed += survives(mutant(tokens, random)) ? 1 : 0;
  CHECK(parsed > 30);
  CHECK(parsed < 2900);
}
