#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/fast_math.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/verifier.h"
#include "tests/support/graphs/round_trip.h"

/// Functions that use a machine's own instructions.
using namespace lathe;
using namespace lathe::kernel;

namespace {

constexpr int count = 8;

/// exp(x) / d by fast operations and by rounded ones; d has as many lanes as x, or one.
Kernel quotients(int lanes, bool one_divisor) {
  Builder b("quotients");
  const Buffer x = b.buffer("x", f32, Access::read), d = b.buffer("d", f32, Access::read),
               fast = b.buffer("fast", f32, Access::write), rounded = b.buffer("rounded", f32, Access::write);
  const Value divisor = b.load(d, 0);
  b.for_loop(0, count, lanes, [&](Value i) {
    const Value from = b.load(x, i, lanes), by = one_divisor ? divisor : b.load(d, i, lanes);
    b.store(fast, i, fast_div(b, fast_exp(b, from), by));
    b.store(rounded, i, b.apply(ScalarOp::exp, {from}) / by);
  });
  return test::round_trip(b.finish());
}

}  // namespace

TEST_CASE("fast exp and division: the interpreter rounds results, special values match exp and division") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const int lanes : {1, 4})
    for (const bool one_divisor : {false, true}) {
      std::vector<float> x = {0.3F, -2.5F, infinity, -infinity, nan, 88.0F, -88.0F, 1.0F},
                         d = {3.0F, 0.0F, 2.0F, -1.0F, 1.0F, 1e-30F, 7.0F, infinity}, fast(count, -1),
                         rounded(count, -2);
      const BoundBuffer buffers[] = {
          {x.data(), count}, {d.data(), count}, {fast.data(), count}, {rounded.data(), count}};
      interpret(quotients(lanes, one_divisor), buffers, {});
      INFO(lanes << " lanes");
      CHECK(std::memcmp(fast.data(), rounded.data(), count * sizeof(float)) == 0);
      CHECK(fast[0] == std::exp(0.3F) / 3.0F);
      CHECK(fast[2] == infinity);
      CHECK(std::isnan(fast[4]));
    }
}

TEST_CASE("fast exp and division print as text") {
  CHECK_THAT(print(quotients(4, true)),
             Catch::Contains(" = fast_exp %") && Catch::Contains(" = fast_div %") && Catch::Contains(" : f32x4\n"));
  CHECK_THAT(print(quotients(1, false)), Catch::Contains(" = fast_exp %") && Catch::Contains(" : f32\n"));
}

TEST_CASE("fast powers of two: the interpreter rounds results, special values match exp") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Builder b("powers");
  const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  b.for_loop(0, count, 4, [&](Value i) { b.store(y, i, fast_exp2(b, b.load(x, i, 4))); });
  const Kernel kernel = test::round_trip(b.finish());
  CHECK_THAT(print(kernel), Catch::Contains(" = fast_exp2 %") && Catch::Contains(" : f32x4\n"));
  std::vector<float> from = {0.0F, -3.0F, 0.3F, infinity, -infinity, nan, 127.5F, -200.0F}, to(count, -1);
  const BoundBuffer buffers[] = {{from.data(), count}, {to.data(), count}};
  interpret(kernel, buffers, {});
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (std::isnan(from[i]))
      CHECK(std::isnan(to[i]));
    else
      CHECK(to[i] == static_cast<float>(std::exp2(static_cast<double>(from[i]))));
  }
}

TEST_CASE("fast exp and division support f32 only") {
  Builder b("wide");
  const Value wide = b.constant(f64, 1), one = b.constant(f32, 1), whole = b.index(1);
  CHECK_THROWS_WITH(fast_exp(b, wide), Catch::Contains("fast_exp of f64"));
  CHECK_THROWS_WITH(fast_exp2(b, wide), Catch::Contains("fast_exp2 of f64"));
  CHECK_THROWS_WITH(fast_div(b, one, wide), Catch::Contains("fast_div of f32, f64"));
  CHECK_THROWS_WITH(fast_div(b, whole, one), Catch::Contains("fast_div of i64, f32"));
  // Invalid operations that builders cannot create are found by the verifier.
  const auto changed = [](const Type& type, const IntrinsicRecord& record) {
    Kernel kernel = quotients(1, false);
    for (Instruction& in : kernel.values)
      if (record_of(in) == &record) in.type = type;
    return kernel;
  };
  CHECK_THROWS_WITH(verify(changed({f64, 1}, fast_exp_record)),
                    Catch::Contains("a fast_exp is f64, not f32") && Catch::Contains("[type]"));
  CHECK_THROWS_WITH(verify(changed({f32, 4}, fast_exp_record)),
                    Catch::Contains("the operand of fast_exp is f32, not f32x4") && Catch::Contains("[type]"));
  CHECK_THROWS_WITH(verify(changed({f64, 1}, fast_div_record)),
                    Catch::Contains("a fast_div is f64, not f32") && Catch::Contains("[type]"));
  CHECK_THROWS_WITH(verify(changed({f32, 4}, fast_div_record)),
                    Catch::Contains("an operand of fast_div is f32, not f32x4") && Catch::Contains("[type]"));
}
