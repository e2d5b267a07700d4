#include <catch2/catch.hpp>
#include <random>

#include "ir/support/dim.h"
#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"

using lathe::Dim;
using lathe::UserError;

namespace {
const Dim n("n"), m("m"), b("B");
std::string text(const Dim& dim) { return dim.to_string(); }
}  // namespace

TEST_CASE("a dim is a polynomial in normal form", "[dim]") {
  CHECK((n + m) * (n - m) == n * n - m * m);
  CHECK((n + 1) * (n + 1) == n * n + 2 * n + 1);
  CHECK(n - n == Dim(0));
  CHECK(b * n * 512 == 512 * n * b);
  CHECK(n != m);
  CHECK(text(2 * n + 1) == "2*n + 1");
  CHECK(text(n * n - m * n * 3 - 1) == "-3*m*n + n*n - 1");
  CHECK(text(Dim(0)) == "0");
  CHECK(text(-1 * n) == "-1*n");
}

TEST_CASE("dim names are for display and do not affect equality", "[dim]") {
  const Dim h("h", 8);
  CHECK(h == Dim(8));
  CHECK(text(h) == "h=8");
  CHECK(text(h.unnamed()) == "8");
  CHECK(text(h * Dim("d_k", 64)) == "512");
  CHECK(text((h * Dim("d_k", 64)).named("d_model")) == "d_model=512");
  CHECK(text(Dim("m", n)) == "m=n");
  CHECK(text(Dim("T", b * n)) == "T=B*n");
  SECTION("a single unknown has its own name, however it was computed") {
    CHECK(n.unnamed().name() == "n");
    CHECK((2 * n - n).name() == "n");
    CHECK((n * m).divided_by(m)->name() == "n");
    CHECK((n + 1).name().empty());
  }
}

TEST_CASE("equality is yes, no or unknown", "[dim]") {
  CHECK(n.equals(n) == Dim::Answer::yes);
  CHECK(n.equals(m) == Dim::Answer::unknown);
  CHECK((n + 1).equals(n) == Dim::Answer::no);
  CHECK(Dim(3).equals(4) == Dim::Answer::no);
  CHECK((2 * n).equals(7) == Dim::Answer::unknown);
}

TEST_CASE("division is exact or returns nothing", "[dim]") {
  CHECK((b * n * 512).divided_by(n * 64) == b * 8);
  CHECK((b * n * 512).divided_by(n * 63) == std::nullopt);
  CHECK((n * n - m * m).divided_by(n - m) == n + m);
  CHECK(((b + n) * (b + n)).divided_by(b + n) == b + n);
  CHECK(n.divided_by(m) == std::nullopt);
  CHECK(n.divided_by(Dim(0)) == std::nullopt);
  CHECK(Dim(0).divided_by(n) == Dim(0));
}

TEST_CASE("a division with a remainder, or the number of an unknown, is an error at the line of the user", "[dim]") {
  CHECK(b * n * 512 / (n * 64) == b * 8);
  CHECK(Dim("d_model", 64) / Dim("h", 4) == Dim(16));
  CHECK(n * 6 / 2 == n * 3);
  CHECK(64 / Dim("h", 4) == Dim(16));
  CHECK(Dim("h", 4).number() == 4);
  const auto failure = [](const auto& f) {
    try {
      f();
    } catch (const UserError& e) {
      return e.label() + " " + e.what();
    }
    return std::string();
  };
  const std::string line = "dim_test.cpp:" + std::to_string(__LINE__ + 1);
  CHECK_THAT(failure([] { static_cast<void>(Dim("d_model", 512) / Dim("h", 7)); }),
             Catch::StartsWith("dim_divide " + line) && Catch::Contains("h=7 does not divide d_model=512"));
  CHECK_THAT(failure([] { static_cast<void>(n / 0); }), Catch::StartsWith("dim_divide"));
  CHECK_THAT(failure([] { static_cast<void>((n + 1).number()); }),
             Catch::StartsWith("dim_unbound") && Catch::Contains("n + 1 is not a number"));
}

TEST_CASE("a product of random polynomials is divisible by each factor", "[dim]") {
  std::mt19937 random(7);
  const Dim unknowns[] = {Dim("a"), Dim("b"), Dim("c")};
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto polynomial = [&] {
    Dim sum(number(-3, 3));
    for (int term = number(1, 4); term > 0; --term) {
      Dim product(number(-4, 4));
      for (int factor = number(0, 3); factor > 0; --factor) product = product * unknowns[number(0, 2)];
      sum = sum + product;
    }
    return sum;
  };
  for (int i = 0; i < 2000; ++i) {
    const Dim x = polynomial(), y = polynomial();
    const lathe::DimBindings at{{"a", number(-5, 5)}, {"b", number(-5, 5)}, {"c", number(-5, 5)}};
    CAPTURE(text(x), text(y));
    CHECK((x * y).evaluate(at) == x.evaluate(at) * y.evaluate(at));
    CHECK((x - y).evaluate(at) == x.evaluate(at) - y.evaluate(at));
    if (!y.is(0)) CHECK((x * y).divided_by(y) == x);
    CHECK(lathe::ir::parse_dim(text(x * y)) == x * y);
  }
}

TEST_CASE("evaluation requires every unknown", "[dim]") {
  CHECK((b * n + 1).evaluate({{"B", 4}, {"n", 10}}) == 41);
  try {
    static_cast<void>(n.evaluate({}));
    FAIL("n has no value");
  } catch (const UserError& e) {
    CHECK(e.label() == "dim_unbound");
  }
}

TEST_CASE("sizes beyond 64 bits, and huge polynomials, are rejected", "[dim]") {
  const auto label = [](auto&& action) -> std::string {
    try {
      action();
    } catch (const UserError& e) {
      return e.label();
    }
    return "none";
  };
  const Dim large(std::int64_t{1} << 62);
  CHECK(label([&] { static_cast<void>(large * 4); }) == "dim_overflow");
  CHECK(label([&] { static_cast<void>(large + large); }) == "dim_overflow");
  CHECK(label([&] { static_cast<void>(Dim(0) - large - large); }) == "dim_overflow");
  CHECK(label([&] { static_cast<void>(Dim(std::numeric_limits<std::int64_t>::min())); }) == "dim_overflow");
  CHECK(label([&] { static_cast<void>((large * n).evaluate({{"n", 2}})); }) == "dim_overflow");
  CHECK(label([&] {
          Dim power = n;
          for (int i = 0; i < 8; ++i) power = power * power;
        }) == "dim_overflow");
  CHECK(label([&] {
          Dim sum(1);
          for (int i = 0; i < 40; ++i) sum = sum * (Dim("x" + std::to_string(i)) + 1);
        }) == "dim_overflow");
  CHECK(label([] { static_cast<void>(Dim("h", -1)); }) == "dim_negative");
  CHECK(label([] { static_cast<void>(Dim("2h")); }) == "dim_name");
}

TEST_CASE("a dim parses back from its text", "[dim]") {
  for (const char* written : {"n", "512", "0", "h=8", "T=B*n", "m=n", "-1*n", "2*n + 1", "-3*m*n + n*n - 1", "x=-3"})
    CHECK(text(lathe::ir::parse_dim(written)) == written);
  CHECK(text(lathe::ir::parse_dim("(n + 1)*(n - 1)")) == "n*n - 1");
  CHECK(text(lathe::ir::parse_dim("d=2*(3 + 4)")) == "d=14");
}
