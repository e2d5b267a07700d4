#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/support/numbers/number.h"
#include "ir/support/tensors/narrow_float.h"

namespace lathe {

/// std::complex<Part>, without <complex>, which takes long to compile.
template <class T, class Part>
concept ComplexOf = requires(const T& value) {
  requires std::same_as<typename T::value_type, Part>;
  value.real();
  value.imag();
};

/// Returns whether elements of `dtype` can be accessed as T: double, float, Bf16, F16, int64_t, int32_t, int8_t,
/// complex<float>, complex<double>. uint8_t accesses u8 or boolean, bool accesses boolean, and uint16_t accesses the
/// bits of bf16 or f16.
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
  if constexpr (ComplexOf<T, float>) return dtype == c64;
  if constexpr (ComplexOf<T, double>) return dtype == c128;
  return false;
}

/// Returns the dtype whose elements are C++ values of type T: f32 for float. std::uint8_t is u8.
template <class T>
  requires(holds<T>(f64) || holds<T>(f32) || holds<T>(i64) || holds<T>(i32) || holds<T>(i8) || holds<T>(u8) ||
           holds<T>(boolean) || holds<T>(c64) || holds<T>(c128) || std::same_as<T, Bf16> || std::same_as<T, F16>)
constexpr DType dtype_of() {
  for (const DType dtype : {f64, f32, bf16, f16, i64, i32, i8, u8, boolean, c64, c128})
    if (holds<T>(dtype)) return dtype;
  return f32;
}

/// An array, vector or span whose elements have a dtype.
template <class R>
concept ElementRange = requires(const R& range) {
  std::span(range.data(), range.size());
  dtype_of<std::remove_cvref_t<decltype(*range.data())>>();
};

/// A dense row-major array in host memory, initialized to zero, with storage aligned to 64 bytes. It has value
/// semantics: a copy has its own storage. Rank 0 is one element. Misuse throws UserError: [host_tensor_dtype],
/// [host_tensor_index], [host_tensor_shape], [host_tensor_alignment], [out_of_memory].
class HostTensor {
 public:
  /// Creates f32[0].
  HostTensor() : HostTensor(f32, {0}) {}
  HostTensor(DType dtype, std::vector<std::int64_t> shape);
  HostTensor(const HostTensor& other);
  HostTensor& operator=(const HostTensor& other);
  /// The moved-from tensor becomes f32[0].
  HostTensor(HostTensor&& other) noexcept;
  HostTensor& operator=(HostTensor&& other) noexcept;
  ~HostTensor() = default;

  /// Returns a tensor that copies the given elements and has their dtype: HostTensor::of({2, 2},
  /// std::vector<float>{..}) is f32[2, 2], HostTensor::of<std::int64_t>({3}, {1, 2, 3}) i64[3]. There must be one
  /// value per element [host_tensor_shape].
  template <class T>
  static HostTensor of(std::vector<std::int64_t> shape, std::span<const T> values) {
    return HostTensor(dtype_of<T>(), std::move(shape), std::as_bytes(values), values.size());
  }
  template <class T>
  static HostTensor of(std::vector<std::int64_t> shape, std::initializer_list<T> values) {
    return of<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  template <ElementRange Range>
  static HostTensor of(std::vector<std::int64_t> shape, const Range& values) {
    using T = std::remove_cvref_t<decltype(*values.data())>;
    return of<T>(std::move(shape), std::span<const T>(values.data(), values.size()));
  }
  /// Converts values like set(); there must be one per element.
  static HostTensor from(std::vector<std::int64_t> shape, const std::vector<double>& values, DType dtype = f32);
  static HostTensor from_ints(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values,
                              DType dtype = i64);
  static HostTensor scalar(double value, DType dtype = f32);
  /// Stores one number per element, exactly; the dtype must be able to represent each.
  static HostTensor from_numbers(std::vector<std::int64_t> shape, const NumberList& values, DType dtype);
  /// Returns a tensor over external memory: the elements at `data`, dense and row-major, aligned to the element size.
  /// Keeps `owner` alive; if that is null, the caller keeps the memory alive. Copies have their own memory.
  static HostTensor borrow(DType dtype, std::vector<std::int64_t> shape, std::byte* data,
                           std::shared_ptr<const void> owner = nullptr);
  /// Same for memory that nothing else writes but tensors of share_private(): pages mapped for this tensor, a part of
  /// a block.
  static HostTensor borrow_private(DType dtype, std::vector<std::int64_t> shape, std::byte* data,
                                   std::shared_ptr<const void> owner);
  /// Same as borrow() for elements of type T, in their dtype; there must be one per element of the shape
  /// [host_tensor_shape].
  template <class T>
  static HostTensor borrow(std::vector<std::int64_t> shape, std::span<T> elements,
                           std::shared_ptr<const void> owner = nullptr) {
    require_count(shape, elements.size());
    return borrow(dtype_of<T>(), std::move(shape), reinterpret_cast<std::byte*>(elements.data()), std::move(owner));
  }
  /// Returns a borrowing tensor over the same memory, which lives as long as either tensor.
  HostTensor share();
  /// Same for another owner that writes the memory only through tensors of this function, and counts the writes. The
  /// result is private if this tensor is.
  HostTensor share_private();
  /// Returns whether the memory is external.
  bool is_borrowed() const { return data_ != nullptr && !storage_; }
  /// Returns whether nothing but this tensor and those of share_private() writes the memory.
  bool is_private() const { return !is_borrowed() || is_private_; }
  /// Returns whether other tensors may have the same memory.
  bool is_shared() const { return is_borrowed() || storage_.use_count() > 1; }
  /// Returns whether this tensor is the only one that keeps the borrowed memory alive.
  bool is_sole_borrower() const { return owner_.use_count() == 1; }

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const& { return shape_; }
  std::vector<std::int64_t> shape() && { return std::move(shape_); }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t numel() const { return numel_; }
  std::size_t bytes() const { return static_cast<std::size_t>(numel_) * size_in_bytes(dtype_); }
  /// Deleted for temporaries, because the pointer would dangle: keep the tensor in a variable.
  std::byte* data() & { return data_; }
  const std::byte* data() const& { return data_; }
  const std::byte* data() const&& = delete;

  /// Returns all elements in row-major order. Does not compile for temporaries, because the span would dangle.
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

  /// Returns the value of a tensor with one element, such as a loss. Throws UserError at the caller's line:
  /// [host_tensor_shape] for another number of elements, [host_tensor_dtype] for a complex element, and for a type T
  /// of integers if the element is a float or out of T's range.
  template <class T = double>
    requires std::is_arithmetic_v<T>
  T item(const std::source_location& where = std::source_location::current()) const {
    return value_as<T>(only_element(where), "item", where);
  }
  /// Returns all elements in row-major order, converted to T by the rules of item().
  template <class T = double>
    requires std::is_arithmetic_v<T>
  std::vector<T> values(const std::source_location& where = std::source_location::current()) const {
    std::vector<T> all(static_cast<std::size_t>(numel_));
    for (std::int64_t i = 0; i < numel_; ++i) all[static_cast<std::size_t>(i)] = value_as<T>(i, "values", where);
    return all;
  }

  /// Returns element i in row-major order. get() supports all real types (an i64 above 2^53 is rounded), get_int()
  /// integers and booleans, exactly, and get_complex() of complex_elements.h all types.
  double get(std::int64_t i) const;
  std::int64_t get_int(std::int64_t i) const;
  /// Same for all real types, exactly.
  Number get_number(std::int64_t i) const;

  /// Throws UserError [host_tensor_index] unless there is an element i.
  void check_index(std::int64_t i) const;

  /// Returns the row-major number of the element at a position, given one index per dim: t.get_int(t.offset({0, 2})).
  /// Throws UserError [host_tensor_index] at the caller's line.
  std::int64_t offset(std::initializer_list<std::int64_t> position,
                      const std::source_location& where = std::source_location::current()) const;
  /// Returns the element at a position, like get(): t.at({0, 2}). Use set() to write.
  double at(std::initializer_list<std::int64_t> position,
            const std::source_location& where = std::source_location::current()) const {
    return get(offset("at", position, where));
  }

  /// Stores a value, converted to the dtype like cast(). set_int() and set_number() are exact for i64. set_complex()
  /// of complex_elements.h requires a complex dtype, set() accepts any.
  void set(std::int64_t i, double value);
  void set_int(std::int64_t i, std::int64_t value);
  void set_number(std::int64_t i, const Number& value);
  /// Stores at a position, given one index per dim: t.set({0, 2}, 3.5), t.set({}, 1) for rank 0. Stores an integer
  /// like set_int(): exactly if an integer dtype can represent it. Throws UserError [host_tensor_index] at the
  /// caller's line.
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

  /// Converts the elements to another dtype by the rules of ScalarOp::cast: floats to nearest, ties to even, rounded
  /// once; float -> integer truncates and saturates, NaN -> 0; integers wrap; x -> bool is x != 0; real -> complex
  /// has imaginary part 0. Complex -> real is an error.
  HostTensor cast(DType dtype) const;

  /// Returns the same elements with another shape of equal size.
  HostTensor reshaped(std::vector<std::int64_t> shape) const&;
  HostTensor reshaped(std::vector<std::int64_t> shape) &&;

  /// Returns whether dtype, shape and bytes are equal: NaN equals the same NaN, 0 differs from -0.
  bool same_bits(const HostTensor& other) const;

  /// Returns "f32[2, 2] [[1, 2], [3, 4.5]]"; abbreviates dims longer than `edge` * 2 to `edge` elements at each end.
  std::string to_string(std::int64_t edge = 4) const;

 private:
  /// Copies `values`, which has `count` elements of the dtype.
  HostTensor(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> values, std::size_t count);
  static void require_count(const std::vector<std::int64_t>& shape, std::size_t values);
  std::int64_t only_element(const std::source_location& where) const;
  double real_value(std::int64_t i, const char* function, const std::source_location& where) const;
  /// Returns element i if it is an integer from `low` to `high`.
  std::int64_t whole_value(std::int64_t i, std::int64_t low, std::int64_t high, const char* function,
                           const std::source_location& where) const;
  template <class T>
  T value_as(std::int64_t i, const char* function, const std::source_location& where) const {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(real_value(i, function, where));
    } else {
      constexpr auto top = std::numeric_limits<std::int64_t>::max();
      constexpr bool fits = sizeof(T) < sizeof(std::int64_t) || std::is_signed_v<T>;
      constexpr auto low = static_cast<std::int64_t>(std::numeric_limits<T>::min());
      constexpr auto high = fits ? static_cast<std::int64_t>(std::numeric_limits<T>::max()) : top;
      return static_cast<T>(whole_value(i, low, high, function, where));
    }
  }
  void allocate();
  std::int64_t offset(const char* function, std::initializer_list<std::int64_t> position,
                      const std::source_location& where) const;
  [[noreturn]] void wrong_type(std::size_t element_size) const;

  DType dtype_ = f32;
  std::vector<std::int64_t> shape_;
  std::int64_t numel_ = 0;
  std::shared_ptr<void> storage_;      ///< owned memory
  std::shared_ptr<const void> owner_;  ///< keeps borrowed memory alive
  std::byte* data_ = nullptr;
  bool is_private_ = false;  ///< of borrowed memory
};

/// Returns the number of elements of a shape. Throws UserError [host_tensor_shape] if a dim is negative or the
/// product overflows.
std::int64_t count_elements(const std::vector<std::int64_t>& shape);

/// Returns the indices of element i in row-major order, one per dim.
std::vector<std::int64_t> position_of(const std::vector<std::int64_t>& shape, std::int64_t i);

/// Returns "[2, 3]".
std::string shape_to_string(const std::vector<std::int64_t>& shape);

}  // namespace lathe
