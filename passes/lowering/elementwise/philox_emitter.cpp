#include "passes/lowering/elementwise/philox_emitter.h"

#include <array>
#include <cmath>

namespace lathe {

namespace {

constexpr std::int64_t low_half = 0xFFFFFFFF;

/// Philox arithmetic on 32-bit words in i64 lanes.
class Philox {
 public:
  explicit Philox(kernel::Builder& b) : b_(b) {}

  kernel::Value low(kernel::Value x) { return b_.apply(ScalarOp::bit_and, {x, like(x, low_half)}); }
  kernel::Value high(kernel::Value x) { return b_.apply(ScalarOp::shift_right, {x, like(x, std::int64_t{32})}); }
  kernel::Value exclusive_or(kernel::Value x, kernel::Value y) { return b_.apply(ScalarOp::bit_xor, {x, y}); }

  /// Returns word 0 after ten rounds (Salmon et al. 2011, section 4.3).
  kernel::Value block(std::array<kernel::Value, 4> c, std::array<kernel::Value, 2> key) {
    constexpr std::int64_t multiplier[2] = {0xD2511F53, 0xCD9E8D57}, weyl[2] = {0x9E3779B9, 0xBB67AE85};
    for (int round = 0; round < 10; ++round) {
      const kernel::Value p0 = c[0] * multiplier[0], p1 = c[2] * multiplier[1];
      c = {exclusive_or(exclusive_or(high(p1), c[1]), key[0]), low(p1),
           exclusive_or(exclusive_or(high(p0), c[3]), key[1]), low(p0)};
      key = {low(key[0] + weyl[0]), low(key[1] + weyl[1])};
    }
    return c[0];
  }

 private:
  kernel::Builder& b_;
};

}  // namespace

std::int64_t stream_salt(std::int64_t stream) {
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(stream) * 0x9E3779B9u);
}

kernel::Value emit_uniform(kernel::Builder& b, kernel::Value seed, kernel::Value step, kernel::Value salt,
                           kernel::Value element, DType dtype) {
  Philox philox(b);
  const std::array<kernel::Value, 2> key = {philox.exclusive_or(philox.low(seed), salt), philox.high(seed)};
  const kernel::Value word =
      philox.block({philox.low(element), philox.high(element), philox.low(step), philox.high(step)}, key);
  const int bits = dtype == f16 ? 11 : dtype == bf16 ? 8 : 24;
  const kernel::Value top = b.apply(ScalarOp::shift_right, {word, b.index(32 - bits)});
  return b.cast(top, dtype == f64 ? f64 : f32) * std::ldexp(1.0, -bits);
}

}  // namespace lathe
