#include <catch2/catch.hpp>
#include <cmath>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/printer.h"
#include "tests/support/graphs/round_trip.h"

using namespace lathe;
using namespace lathe::kernel;
using Catch::Contains;

namespace {

/// Tests how a value prints as an operand, and how many instructions it needs.
struct Folding {
  Builder b{"fold"};
  Value n = b.dim("n"), m = b.dim("m");
  Buffer x = b.buffer("x", f32, Access::read), out = b.buffer("out", f32, Access::write);
  Buffer ints = b.buffer("ints", i64, Access::write);
  Value f = b.load(x, 0);

  std::string text(Value value) {
    b.store(value.type.scalar == f32 ? out : ints, 0, value);
    const std::string all = canonical_text(test::round_trip(b.finish()));
    return all.substr(all.find('\n') + 1);
  }
};

std::string stored(const std::function<Value(Folding&)>& make) {
  Folding fold;
  const std::string text = fold.text(make(fold));
  // Only the text between the load of f and the closing brace.
  const std::size_t first = text.find('\n') + 1;
  return text.substr(first, text.size() - first - 2);
}

}  // namespace

TEST_CASE("integer arithmetic simplifies") {
  CHECK(stored([](Folding& s) { return s.n + 0; }) == "  store b2[0] = d0\n");
  CHECK(stored([](Folding& s) { return 0 + s.n; }) == "  store b2[0] = d0\n");
  CHECK(stored([](Folding& s) { return s.n * 1; }) == "  store b2[0] = d0\n");
  CHECK(stored([](Folding& s) { return s.n * 0; }) == "  store b2[0] = 0\n");
  CHECK(stored([](Folding& s) { return s.n - s.n; }) == "  store b2[0] = 0\n");
  CHECK(stored([](Folding& s) { return s.n / 1; }) == "  store b2[0] = d0\n");
  CHECK(stored([](Folding& s) { return s.n % 1; }) == "  store b2[0] = 0\n");
  CHECK(stored([](Folding& s) { return s.b.index(7) / 2 + s.b.index(7) % 4; }) == "  store b2[0] = 6\n");
  CHECK(stored([](Folding& s) { return (s.n + 3) - 3; }).find("store b2[0] = d0") != std::string::npos);
  CHECK(stored([](Folding& s) { return (s.n * 3) * 5; }).find("mul d0, 15") != std::string::npos);
  CHECK(stored([](Folding& s) { return s.n + s.m; }) == "  %1 = add d0, d1 : i64\n  store b2[0] = %1\n");
  CHECK(stored([](Folding& s) { return s.b.select(s.n < s.n, s.n, s.m); }) == "  store b2[0] = d1\n");
  CHECK(stored([](Folding& s) { return s.b.index(std::int64_t{1} << 62) * 4; }) == "  store b2[0] = 0\n");
  CHECK(stored([](Folding& s) { return s.b.index(5) / 0; }) == "  store b2[0] = 0\n");
}

TEST_CASE("float arithmetic simplifies only if no bit changes") {
  CHECK(stored([](Folding& s) { return s.f * 1.0; }) == "  store b1[0] = %0\n");
  CHECK(stored([](Folding& s) { return s.f - 0.0; }) == "  store b1[0] = %0\n");
  CHECK(stored([](Folding& s) { return s.f + -0.0; }) == "  store b1[0] = %0\n");
  CHECK(stored([](Folding& s) { return -(-s.f); }).find("store b1[0] = %0") != std::string::npos);
  CHECK(stored([](Folding& s) { return s.f + 0.0; }).find("add %0, 0:f32") != std::string::npos);
  CHECK(stored([](Folding& s) { return s.f * 0.0; }).find("mul %0, 0:f32") != std::string::npos);
  CHECK(stored([](Folding& s) { return s.f - s.f; }).find("sub %0, %0") != std::string::npos);
  CHECK(stored([](Folding& s) { return s.b.constant(f32, 0.1) + 0.2; }) ==
        "  store b1[0] = 0.30000001192092896:f32\n");
  CHECK(stored([](Folding& s) { return s.b.cast(s.b.constant(bf16, 1.01), f32); }) ==
        "  store b1[0] = 1.0078125:f32\n");
  CHECK(stored([](Folding& s) { return s.b.cast(s.b.cast(s.f, f64), f32); }).find("store b1[0] = %0") !=
        std::string::npos);
  CHECK(stored([](Folding& s) { return s.b.cast(s.b.cast(s.f, bf16), f32); }).find("store b1[0] = %0") ==
        std::string::npos);
}

TEST_CASE("constant branches, loops and masks leave no code") {
  Builder b("k");
  Buffer x = b.buffer("x", f32, Access::read_write);
  b.if_(b.index(1) < 2, [&] { b.store(x, 0, b.constant(f32, 1)); }, [&] { b.store(x, 1, b.constant(f32, 1)); });
  b.for_loop(3, 3, 1, [&](Value i) { b.store(x, i, b.constant(f32, 1)); });
  b.check(b.index(1) < 2, 1);
  b.store(x, 2, b.load(x, 3, 4, b.constant(boolean, 0)), b.constant(boolean, 1));
  b.store(x, 3, b.constant(f32, 1, 4), b.constant(boolean, 0, 4));
  CHECK(print(test::round_trip(b.finish())) ==
        "kernel @k(x: readwrite f32) {\n  store x[0] = 1:f32\n  store x[2] = 0:f32x4\n}\n");
}

TEST_CASE("the builder rejects wrong types") {
  Builder b("k");
  Buffer x = b.buffer("x", f32, Access::read_write), h = b.buffer("h", bf16, Access::read);
  Value n = b.dim("n"), f = b.load(x, 0), v = b.load(x, 0, 4);
  CHECK_THROWS_WITH(f + n, Catch::Contains("add of"));
  CHECK_THROWS_WITH(b.load(h, 0) + b.load(h, 1), Catch::Contains("add of bf16"));
  CHECK_THROWS_WITH(b.fma(b.load(h, 0), b.load(h, 0), b.load(h, 1)), Catch::Contains("fma of bf16"));
  CHECK_THROWS_WITH(v + b.load(x, 0, 8), Catch::Contains("broadcast to 8"));
  CHECK_THROWS_WITH(b.store(x, 0, n), Catch::Contains("a store of i64 to a buffer of f32"));
  CHECK_THROWS_WITH(b.load(x, f), Catch::Contains("index"));
  CHECK_THROWS_WITH(b.load(x, 0, 3), Catch::Contains("3 lanes"));
  CHECK_THROWS_WITH(b.if_(v < 0.0, [] {}), Catch::Contains("scalar boolean"));
  CHECK_THROWS_WITH(b.gather(x, b.ramp(b.constant_int(i32, 0), 4)), Catch::Contains("gather by i32x4"));
  CHECK_THROWS_WITH(b.extract(v, 4), Catch::Contains("lane 4"));
  CHECK_THROWS_WITH(b.shuffle(v, v, {8, 0}), Catch::Contains("lane 8"));
  CHECK_THROWS_WITH(b.constant(i64, 0.5), Catch::Contains("whole"));
  CHECK_THROWS_WITH(b.constant_int(i32, std::int64_t{1} << 31), Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(b.buffer("c", c64, Access::read), Catch::Contains("real type"));
  CHECK_THROWS_WITH(b.apply(ScalarOp::exp, {n}), Catch::Contains("exp of i64"));
  CHECK_THROWS_WITH(b.check(n < 1, 0), Catch::Contains("positive code"));
  CHECK_THROWS_WITH(Value() + Value(), Catch::Contains("empty values"));
}

namespace {

/// Returns the condition of 16 neighbours from `first` on, in a loop over `index` with step 16.
std::string condition(const std::function<Value(Builder& b, Value index, Value n)>& make) {
  Builder b("condition");
  const Value n = b.dim("n");
  const Buffer x = b.buffer("x", f32, Access::read), out = b.buffer("out", f32, Access::write);
  b.for_loop(0, n, 16, [&](Value index) { b.store(out, index, b.load(x, index, 16), make(b, index, n)); });
  return canonical_text(test::round_trip(b.finish()));
}

}  // namespace

TEST_CASE("a condition that is uniform over lanes is computed once") {
  CHECK_THAT(condition([](Builder& b, Value i, Value) { return b.ramp(i, 16) < b.broadcast(b.index(48), 16); }),
             Contains("lt i0, 48 : bool\n") && !Contains("lt %"));
  CHECK_THAT(
      condition([](Builder& b, Value i, Value n) {
        const Value at = b.ramp(i - 16, 16);
        return b.broadcast(b.index(0), 16) <= at && at < b.broadcast(n * 32, 16);
      }),
      Contains("le 0, %0 : bool\n") && Contains("lt %0, %4 : bool\n") && Contains("logical_and %2, %6 : bool\n"));
}

TEST_CASE("a condition that may vary over lanes is computed per lane") {
  // A bound or a start in between, an unknown bound, and the other two comparisons.
  for (const std::string& text :
       {condition([](Builder& b, Value i, Value) { return b.ramp(i, 16) < b.broadcast(b.index(40), 16); }),
        condition([](Builder& b, Value i, Value) { return b.ramp(i + 8, 16) < b.broadcast(b.index(48), 16); }),
        condition([](Builder& b, Value i, Value n) { return b.ramp(i, 16) < b.broadcast(n, 16); }),
        condition([](Builder& b, Value i, Value) { return b.ramp(i, 16) <= b.broadcast(b.index(48), 16); }),
        condition([](Builder& b, Value i, Value) { return b.broadcast(b.index(48), 16) < b.ramp(i, 16); }),
        condition(
            [](Builder& b, Value i, Value) { return b.ramp(i, 16, b.index(2)) < b.broadcast(b.index(64), 16); })}) {
    CHECK(text.find("boolx16\n") != std::string::npos);
    CHECK(text.find(": bool\n") == std::string::npos);
  }
}

TEST_CASE("known multiples of values") {
  Builder b("multiples");
  const Value n = b.dim("n"), rows = n * 768;
  const std::vector<std::pair<Value, std::int64_t>> expected = {
      {n, 1},
      {rows, 256},
      {rows + 12, 4},
      {rows % 32, 32},
      {rows / 2, 1},
      {b.select(n < 3, rows, b.index(64)), 64},
      {b.index(0), std::int64_t{1} << 30},
      {b.index(-24), 8},
  };
  const Kernel kernel = b.finish();
  Divisors divisors;
  for (ValueId id = 0; id < static_cast<ValueId>(kernel.values.size()); ++id)
    divisors.tell(id, kernel.values[static_cast<std::size_t>(id)]);
  for (const auto& [value, divisor] : expected) CHECK(divisors.of(value.id) == divisor);
}
