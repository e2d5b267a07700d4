#include <complex>

#include "ir/tensor/interpret/evaluate.h"

namespace lathe::ir {

namespace {

std::int64_t wrapped(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrapped(0 - static_cast<std::uint64_t>(a)) : a / b;
}

std::int64_t remainder(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

/// Whether a shift leaves any of `bits` bits; negative counts are large here.
bool shifts(std::uint64_t count, int bits) { return count < static_cast<std::uint64_t>(bits); }
std::uint64_t lowest(int bits) { return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; }

[[noreturn]] void not_defined(ScalarOp op, std::string_view kind) {
  throw InternalError(std::string(name(op)) + " is not defined for " + std::string(kind));
}

}  // namespace

std::int64_t integer_scalar(ScalarOp op, std::span<const std::int64_t> x, int bits) {
  const std::int64_t a = x[0], b = x.size() > 1 ? x[1] : 0;
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  switch (op) {
    case ScalarOp::add: return wrapped(ua + ub);
    case ScalarOp::sub: return wrapped(ua - ub);
    case ScalarOp::mul: return wrapped(ua * ub);
    case ScalarOp::div: return quotient(a, b);
    case ScalarOp::rem: return remainder(a, b);
    case ScalarOp::min: return a < b ? a : b;
    case ScalarOp::max: return a > b ? a : b;
    case ScalarOp::neg: return wrapped(0 - ua);
    case ScalarOp::abs: return a < 0 ? wrapped(0 - ua) : a;
    case ScalarOp::sign: return (a > 0) - (a < 0);
    case ScalarOp::eq: return a == b;
    case ScalarOp::ne: return a != b;
    case ScalarOp::lt: return a < b;
    case ScalarOp::le: return a <= b;
    case ScalarOp::bit_and: return a & b;
    case ScalarOp::bit_or: return a | b;
    case ScalarOp::bit_xor: return a ^ b;
    case ScalarOp::shift_left: return shifts(ub, bits) ? wrapped(ua << ub) : 0;
    case ScalarOp::shift_right: return shifts(ub, bits) ? wrapped((ua & lowest(bits)) >> ub) : 0;
    case ScalarOp::select: return a != 0 ? x[1] : x[2];
    case ScalarOp::cast: return a;
    default: not_defined(op, "integers");
  }
}

std::complex<double> complex_scalar(ScalarOp op, std::span<const std::complex<double>> x) {
  if (op == ScalarOp::add) return x[0] + x[1];
  if (op == ScalarOp::sub) return x[0] - x[1];
  if (op == ScalarOp::mul)
    return {x[0].real() * x[1].real() - x[0].imag() * x[1].imag(),
            x[0].real() * x[1].imag() + x[0].imag() * x[1].real()};
  if (op == ScalarOp::neg) return -x[0];
  if (op == ScalarOp::eq) return x[0] == x[1] ? 1.0 : 0.0;
  if (op == ScalarOp::ne) return x[0] != x[1] ? 1.0 : 0.0;
  not_defined(op, "complex numbers");
}

}  // namespace lathe::ir
