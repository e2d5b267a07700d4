#include "ir/support/numbers/number.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "ir/tensor/text/printer.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;

namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                       highest = std::numeric_limits<std::int64_t>::max(), odd = (std::int64_t{1} << 53) + 1;

}  // namespace

TEST_CASE("a number is any double, or any 64-bit integer") {
  for (const std::int64_t integer : {std::int64_t{0}, std::int64_t{-7}, odd, -odd, lowest, lowest + 1, highest}) {
    const Number number(integer);
    CHECK(number.is_i64());
    CHECK(number.integer() == integer);
    CHECK(number.real() == static_cast<double>(integer));
    CHECK(number.is_double() == (number.real() < 0x1p63 && static_cast<std::int64_t>(number.real()) == integer));
  }
  CHECK(Number(odd) != Number(odd - 1));
  CHECK(Number(odd) != Number(static_cast<double>(odd)));
  CHECK(Number(3) == Number(3.0));
  CHECK(Number(odd).to_string() == "9007199254740993");
  CHECK(Number(highest).to_string() == "9223372036854775807");
  CHECK(Number(std::numeric_limits<std::uint64_t>::max()).to_string() == "18446744073709551615");
  for (const double real : {0.5, 0x1p63, -0x1.8p63, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_FALSE(Number(real).is_i64());
  CHECK(std::signbit(Number(-0.0).real()));
}

TEST_CASE("a number fits a dtype if representable, otherwise it is rounded") {
  CHECK(Number(highest).fits(i64));
  CHECK_FALSE(Number(0x1p63).fits(i64));
  CHECK_FALSE(Number(std::numeric_limits<std::uint64_t>::max()).fits(i64));
  CHECK(Number(-128).fits(i8));
  CHECK_FALSE(Number(-1).fits(u8));
  CHECK_FALSE(Number(0.5).fits(i32));
  CHECK(Number(true).fits(boolean));
  CHECK_FALSE(Number(2).fits(boolean));
  CHECK(Number(0.1).rounded_to(bf16) == Number(0.10009765625));
  CHECK(Number(0.1).rounded_to(f16) == Number(0.0999755859375));
  CHECK(Number(odd).rounded_to(i64) == Number(odd));
  CHECK(Number(odd).rounded_to(f64) == Number(0x1p53));
  // One above a tie of f32, bf16 and f16, to which f64 and f32 round.
  CHECK(Number((std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1).rounded_to(f32) == Number(0x1.000002p60));
  CHECK(Number((std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1).rounded_to(bf16) == Number(0x1.02p60));
  CHECK(Number(1.0004882812509095).rounded_to(f16) == Number(1.0009765625));
}

TEST_CASE("a list of numbers keeps every number exactly") {
  NumberList list{0.5, odd, -1};
  CHECK(list.size() == 3);
  CHECK(list[0] == Number(0.5));
  CHECK(list[1] == Number(odd));
  CHECK(list[2] == Number(-1));
  CHECK(list != NumberList{0.5, odd - 1, -1});
  CHECK(NumberList(std::vector<std::int64_t>{odd})[0] == Number(odd));
  CHECK(NumberList(std::vector<double>{1, 2}) == NumberList{1, 2});
}

TEST_CASE("64-bit integers round-trip through the text of a graph") {
  const std::string source = R"(graph @g(input %x: i64[n], input %m: bool[n]) {
  %1 = constant {dtype=i64, shape=[4], values=[9007199254740993, -9007199254740995, 9223372036854775807, -9223372036854775808]}
  %2 = masked_fill %x, %m {value=9223372036854775807}
  %3 = clamp %2 {low=-9223372036854775807, high=4611686018427387905}
  output "c" %1
  output "y" %3
})";
  const ir::Graph graph = parse_graph(source);
  const auto& values = graph[{2}].attrs.get<NumberList>("values");
  CHECK(values[0] == Number(odd));
  CHECK(values[1] == Number(-odd - 2));
  CHECK(values[2] == Number(highest));
  CHECK(values[3] == Number(lowest));
  CHECK(graph[{4}].attrs.get<Number>("low") == Number(lowest + 1));
  const std::string text = print(graph);
  CHECK(print(parse_graph(text)) == text);
  CHECK(parse_graph(text)[{2}].attrs == graph[{2}].attrs);
  CHECK(text.find("values=[9007199254740993, -9007199254740995, 9223372036854775807, ") != std::string::npos);
  CHECK(text.find("{low=-9223372036854775807, high=4611686018427387905}") != std::string::npos);
}
