#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/support/number.h"
#include "ir/support/tensors/narrow_float.h"

namespace lathe {

/// Whether an element of `dtype` may be seen as a T: double, float, Bf16, F16, int64_t, int32_t, int8_t,
/// complex<float>, complex<double>; uint8_t sees a u8 or a boolean, bool a boolean, uint16_t the bits of a bf16 or
/// f16.
template <class T>
constexpr bool holds(DType dtype) {
  if constexpr (std::is_same_v<T, double>) return dtype == f64;
  if constexpr (std::is_same_v<T, float>) return dtype == f32;
  if constexpr (std::is_same_v<T, Bf16>) return dtype == bf16;
  if constexpr (std::is_same_v<T, F16>) return dtype == f16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return dtype == bf16 || dtype == f16;
  if constexpr (std::is_same_v<T, std::int64_t>) return dtype == i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return dtype == i32;
  if constexpr (std::is_same_v<T, std::int8_t>) return dtype == i8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return dtype == u8 || dtype == boolean;
  if constexpr (std::is_same_v<T, bool>) return dtype == boolean;
  if constexpr (std::is_same_v<T, std::complex<float>>) return dtype == c64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return dtype == c128;
  return false;
}

/// A dense row-major array in host memory, zero at first, its storage aligned to 64 bytes. A value: a copy has its
/// own storage. Rank 0 is one element. Misuse throws UserError: [host_tensor_dtype], [host_tensor_index],
/// [host_tensor_shape], [host_tensor_alignment]; [out_of_memory].
class HostTensor {
 public:
  /// f32[0].
  HostTensor() : HostTensor(f32, {0}) {}
  HostTensor(DType dtype, std::vector<std::int64_t> shape);
  HostTensor(const HostTensor& other);
  HostTensor& operator=(const HostTensor& other);
  /// What was moved from is f32[0] again.
  HostTensor(HostTensor&& other) noexcept;
  HostTensor& operator=(HostTensor&& other) noexcept;
  ~HostTensor() = default;

  /// Values are converted as by set(); their number must be that of the shape's elements.
  static HostTensor from(std::vector<std::int64_t> shape, const std::vector<double>& values, DType dtype = f32);
  static HostTensor from_ints(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values,
                              DType dtype = i64);
  static HostTensor scalar(double value, DType dtype = f32);
  /// NumberList that the dtype fits, one for each element, exactly.
  static HostTensor from_numbers(std::vector<std::int64_t> shape, const NumberList& values, DType dtype);
  /// An array over memory that is not its own: the elements at `data`, dense and row-major, at a multiple of the
  /// element's size. It keeps `owner` alive; where that is null, the caller keeps the memory. Copies have their own.
  static HostTensor borrow(DType dtype, std::vector<std::int64_t> shape, std::byte* data,
                           std::shared_ptr<const void> owner = nullptr);
  /// An array over the same memory, which stays as long as one of both does: borrowed.
  HostTensor share();
  /// Whether the memory is somebody else's.
  bool is_borrowed() const { return data_ != nullptr && !storage_; }
  /// Whether borrowed memory is kept alive for this tensor alone.
  bool is_sole_borrower() const { return owner_.use_count() == 1; }

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const& { return shape_; }
  std::vector<std::int64_t> shape() && { return std::move(shape_); }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t numel() const { return numel_; }
  std::size_t bytes() const { return static_cast<std::size_t>(numel_) * size_in_bytes(dtype_); }
  /// Of a temporary they would dangle, and do not compile: keep the tensor in a variable.
  std::byte* data() & { return data_; }
  const std::byte* data() const& { return data_; }
  const std::byte* data() const&& = delete;

  /// All elements in row-major order. Of a temporary the span would dangle, and does not compile.
  template <class T>
  std::span<T> as() & {
    if (!holds<std::remove_const_t<T>>(dtype_)) wrong_type(sizeof(T));
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(numel_)};
  }
  template <class T>
  auto as() const&& {
    static_assert(sizeof(T) == 0, "the span of a temporary tensor dangles: keep the tensor in a variable");
    return std::span<const T>();
  }
  template <class T>
  std::span<const T> as() const& {
    if (!holds<std::remove_const_t<T>>(dtype_)) wrong_type(sizeof(T));
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(numel_)};
  }

  /// Element i in row-major order. get() gives any real type (an i64 above 2^53 is rounded), get_int() integers and
  /// booleans exactly, get_complex() everything.
  double get(std::int64_t i) const;
  std::int64_t get_int(std::int64_t i) const;
  std::complex<double> get_complex(std::int64_t i) const;
  /// The same of any real type, exactly.
  Number get_number(std::int64_t i) const;

  /// The number of the element at a position, one index for each dim: t.get_int(t.offset({0, 2})). Throws UserError
  /// [host_tensor_index] at the caller's line.
  std::int64_t offset(std::initializer_list<std::int64_t> position,
                      const std::source_location& where = std::source_location::current()) const;
  /// The element at a position, as get() gives it: t.at({0, 2}). set() writes one.
  double at(std::initializer_list<std::int64_t> position,
            const std::source_location& where = std::source_location::current()) const {
    return get(offset("at", position, where));
  }

  /// Stores a value converted to the dtype as cast() says. set_int() and set_number() are exact for i64;
  /// set_complex() wants a complex dtype, set() takes any.
  void set(std::int64_t i, double value);
  void set_int(std::int64_t i, std::int64_t value);
  void set_number(std::int64_t i, const Number& value);
  void set_complex(std::int64_t i, std::complex<double> value);
  /// Stores at a position, one index for each dim: t.set({0, 2}, 3.5), t.set({}, 1) of rank 0. An integer is stored
  /// as by set_int(), exactly where the dtype is an integer that holds it. Throws UserError [host_tensor_index] at
  /// the caller's line.
  template <class T>
    requires std::is_arithmetic_v<T>
  void set(std::initializer_list<std::int64_t> position, T value,
           const std::source_location& where = std::source_location::current()) {
    const std::int64_t i = offset("set", position, where);
    if constexpr (std::is_integral_v<T>)
      set_int(i, static_cast<std::int64_t>(value));
    else
      set(i, static_cast<double>(value));
  }

  /// The same elements in another dtype, by the rules of ScalarOp::cast: floats to nearest, ties to even, rounded
  /// once; float -> integer truncates and saturates, NaN -> 0; integers wrap; x -> bool is x != 0; real -> complex
  /// has imaginary part 0. Complex -> real is an error.
  HostTensor cast(DType dtype) const;

  /// The same elements in another shape of as many.
  HostTensor reshaped(std::vector<std::int64_t> shape) const&;
  HostTensor reshaped(std::vector<std::int64_t> shape) &&;

  /// Same dtype, shape and bytes: NaN equals the same NaN, 0 differs from -0.
  bool same_bits(const HostTensor& other) const;

  /// "f32[2, 2] [[1, 2], [3, 4.5]]"; of each dimension longer than `edge` * 2 only both edges.
  std::string to_string(std::int64_t edge = 4) const;

 private:
  void allocate();
  std::int64_t offset(const char* function, std::initializer_list<std::int64_t> position,
                      const std::source_location& where) const;
  [[noreturn]] void wrong_type(std::size_t element_size) const;
  void check_index(std::int64_t i) const;

  DType dtype_ = f32;
  std::vector<std::int64_t> shape_;
  std::int64_t numel_ = 0;
  std::shared_ptr<void> storage_;      ///< its own memory
  std::shared_ptr<const void> owner_;  ///< of borrowed memory
  std::byte* data_ = nullptr;
};

/// The number of elements of a shape. UserError [host_tensor_shape] if a dim is negative or the product overflows.
std::int64_t count_elements(const std::vector<std::int64_t>& shape);

/// The indices of element i in row-major order, one for each dim.
std::vector<std::int64_t> position_of(const std::vector<std::int64_t>& shape, std::int64_t i);

/// "[2, 3]"
std::string shape_to_string(const std::vector<std::int64_t>& shape);

}  // namespace lathe
