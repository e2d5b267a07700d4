#include "ir/support/numbers/number.h"

#include <fmt/core.h>

#include <cmath>

#include "ir/support/error.h"
#include "ir/support/tensors/narrow_float.h"

namespace lathe {

bool Number::is_i64() const {
  if (!(real_ >= -0x1p63 && real_ <= 0x1p63) || real_ != std::trunc(real_)) return false;
  return real_ != 0x1p63 || rest_ < 0;
}

bool Number::fits(DType dtype) const {
  if (is_float(dtype) || is_complex(dtype)) return true;
  if (!is_i64()) return false;
  if (dtype == boolean) return integer() == 0 || integer() == 1;
  const auto [lowest, highest] = integer_limits(dtype);
  return integer() >= lowest && integer() <= highest;
}

Number Number::rounded_to(DType dtype) const {
  const double odd = is_double() || !is_i64() ? real_ : round_to_odd(integer());
  switch (is_complex(dtype) ? real_part(dtype) : dtype) {
    case DType::f64: return real_;
    case DType::f32: return static_cast<float>(odd);
    case DType::bf16: return to_float(to_bf16(odd));
    case DType::f16: return to_float(to_f16(odd));
    case DType::i64:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::boolean: return *this;
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("a dtype out of range");
}

std::string Number::to_string() const {
  if (is_double()) return fmt::format("{}", real_);
  return is_i64() ? fmt::format("{}", integer()) : fmt::format("{}", static_cast<std::uint64_t>(integer()));
}

void NumberList::push_back(const Number& number) {
  reals_.push_back(number.real_);
  if (number.rest_ != 0 || !rests_.empty()) {
    rests_.resize(reals_.size());
    rests_.back() = number.rest_;
  }
}

NumberList NumberList::rounded_to(DType dtype) const {
  NumberList rounded;
  for (std::size_t i = 0; i < size(); ++i) rounded.push_back((*this)[i].rounded_to(dtype));
  return rounded;
}

}  // namespace lathe
