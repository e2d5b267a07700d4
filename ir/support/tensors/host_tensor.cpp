#include "ir/support/tensors/host_tensor.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/support/tensors/complex_elements.h"

namespace lathe {

namespace {

constexpr std::size_t alignment = 64, huge_page = std::size_t{2} << 20;

/// A boolean element: a byte with its own type, because u8 is a number.
enum class Flag : std::uint8_t {};

/// Calls f with a value of the C++ element type of `dtype`; a boolean is a Flag.
template <class F>
decltype(auto) with_element_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f64: return f(double{});
    case DType::f32: return f(float{});
    case DType::bf16: return f(Bf16{});
    case DType::f16: return f(F16{});
    case DType::i64: return f(std::int64_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i8: return f(std::int8_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::boolean: return f(Flag{});
    case DType::c64: return f(std::complex<float>{});
    case DType::c128: return f(std::complex<double>{});
  }
  throw InternalError("a dtype out of range");
}

template <class T>
constexpr bool is_complex_type = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
constexpr bool is_16_bits = std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;

/// Converts to a type from which a single rounding gives the nearest bf16 or f16.
template <class From>
auto before_narrowing(From value) {
  if constexpr (std::is_same_v<From, std::int64_t>)
    return round_to_odd(value);
  else if constexpr (std::is_same_v<From, float>)
    return value;
  else
    return static_cast<double>(value);
}

template <class To, class From>
To float_to_integer(From value) {
  constexpr auto low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  const auto wide = static_cast<double>(value);
  if (wide != wide) return 0;
  if (wide <= static_cast<double>(low)) return low;
  if (wide >= static_cast<double>(high)) return high;
  return static_cast<To>(wide);
}

/// Converts from any real type to any real or complex type.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_16_bits<From>) {
    return convert<To>(to_float(value));
  } else if constexpr (std::is_same_v<From, Flag>) {
    return convert<To>(static_cast<std::uint8_t>(value));
  } else if constexpr (std::is_same_v<To, Flag>) {
    return static_cast<Flag>(value != From{});
  } else if constexpr (is_complex_type<To>) {
    return To(convert<typename To::value_type>(value));
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return to_bf16(before_narrowing(value));
  } else if constexpr (std::is_same_v<To, F16>) {
    return to_f16(before_narrowing(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return float_to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class T>
T load(const std::byte* data, std::int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* data, std::int64_t i, T value) {
  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): i is an element, so there are some
  std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

[[noreturn]] void not_possible(DType dtype, std::string_view what) {
  throw UserError(fmt::format("{} of a tensor of {}", what, name(dtype)), "host_tensor_dtype");
}

void check_count(std::size_t values, const HostTensor& tensor) {
  if (values != static_cast<std::size_t>(tensor.numel()))
    throw UserError(fmt::format("{} values for shape {}", values, shape_to_string(tensor.shape())),
                    "host_tensor_shape");
}

/// Makes the shape of a moved-from tensor [0]. Moves do not throw: without memory for it, the shape has no dims.
void make_empty(std::vector<std::int64_t>& shape) noexcept {
  try {
    shape.assign(1, 0);
  } catch (const std::bad_alloc&) {
    shape.clear();
  }
}

/// The sign of a NaN has no meaning and depends on the instructions that made it, so it is not printed.
template <class Real>
std::string real_to_string(Real value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string element_to_string(const HostTensor& tensor, std::int64_t i) {
  return with_element_type(tensor.dtype(), [&](auto tag) -> std::string {
    using T = decltype(tag);
    const T value = load<T>(tensor.data(), i);
    if constexpr (is_complex_type<T>) {
      return fmt::format("{}{:+}i", value.real(), value.imag());
    } else if constexpr (is_16_bits<T>) {
      return real_to_string(to_float(value));
    } else if constexpr (std::is_same_v<T, Flag>) {
      return value == Flag{} ? "false" : "true";
    } else if constexpr (std::is_floating_point_v<T>) {
      return real_to_string(value);
    } else {
      return fmt::format("{}", value);
    }
  });
}

/// Appends the elements of dims [dim, rank), starting with element `start`.
void append_elements(std::string& text, const HostTensor& tensor, std::size_t dim, std::int64_t start,
                     std::int64_t edge) {
  if (dim == tensor.shape().size()) {
    text += element_to_string(tensor, start);
    return;
  }
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < tensor.shape().size(); ++d) stride *= tensor.shape()[d];
  const std::int64_t size = tensor.shape()[dim];
  text += '[';
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) text += ", ";
    if (i == edge && size > 2 * edge) {
      text += "..., ";
      i = size - edge;
    }
    append_elements(text, tensor, dim + 1, start + i * stride, edge);
  }
  text += ']';
}

}  // namespace

std::int64_t count_elements(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0)
      throw UserError(fmt::format("dimension {} of shape {} is negative", dim, shape_to_string(shape)),
                      "host_tensor_shape");
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      throw UserError(fmt::format("shape {} has more than 2^63 elements", shape_to_string(shape)),
                      "host_tensor_shape");
    }
  }
  return empty ? 0 : count;
}

std::vector<std::int64_t> position_of(const std::vector<std::int64_t>& shape, std::int64_t i) {
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= std::max<std::int64_t>(1, shape[d]))
    position[d] = i % std::max<std::int64_t>(1, shape[d]);
  return position;
}

std::string shape_to_string(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + "]";
}

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), numel_(count_elements(shape_)) {
  allocate();
}

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> values,
                       std::size_t count)
    : HostTensor(dtype, std::move(shape)) {
  check_count(count, *this);
  if (numel_ > 0) std::memcpy(data_, values.data(), bytes());
}

HostTensor::HostTensor(const HostTensor& other) : HostTensor(other.dtype_, other.shape_) {
  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): both have the same elements, so both have memory
  if (numel_ > 0) std::memcpy(data_, other.data_, bytes());
}

HostTensor& HostTensor::operator=(const HostTensor& other) {
  if (this != &other) *this = HostTensor(other);
  return *this;
}

HostTensor::HostTensor(HostTensor&& other) noexcept
    : dtype_(std::exchange(other.dtype_, f32)),
      shape_(std::move(other.shape_)),
      numel_(std::exchange(other.numel_, 0)),
      storage_(std::move(other.storage_)),
      owner_(std::move(other.owner_)),
      data_(std::exchange(other.data_, nullptr)),
      is_private_(std::exchange(other.is_private_, false)) {
  make_empty(other.shape_);
}

HostTensor& HostTensor::operator=(HostTensor&& other) noexcept {
  if (this == &other) return *this;
  dtype_ = std::exchange(other.dtype_, f32);
  shape_ = std::move(other.shape_);
  make_empty(other.shape_);
  numel_ = std::exchange(other.numel_, 0);
  storage_ = std::move(other.storage_);
  owner_ = std::move(other.owner_);
  data_ = std::exchange(other.data_, nullptr);
  is_private_ = std::exchange(other.is_private_, false);
  return *this;
}

HostTensor HostTensor::borrow(DType dtype, std::vector<std::int64_t> shape, std::byte* data,
                              std::shared_ptr<const void> owner) {
  HostTensor tensor(dtype, {0});
  tensor.shape_ = std::move(shape);
  tensor.numel_ = count_elements(tensor.shape_);
  if (reinterpret_cast<std::uintptr_t>(data) % size_in_bytes(dtype) != 0)
    throw UserError(fmt::format("{}{} at an address that is not a multiple of {} bytes", name(dtype),
                                shape_to_string(tensor.shape_), size_in_bytes(dtype)),
                    "host_tensor_alignment", "copy the elements to aligned memory");
  tensor.owner_ = std::move(owner);
  tensor.data_ = tensor.numel_ > 0 ? data : nullptr;
  return tensor;
}

void HostTensor::require_count(const std::vector<std::int64_t>& shape, std::size_t values) {
  if (std::cmp_not_equal(values, count_elements(shape)))
    throw UserError(fmt::format("{} values for shape {}", values, shape_to_string(shape)), "host_tensor_shape");
}

HostTensor HostTensor::borrow_private(DType dtype, std::vector<std::int64_t> shape, std::byte* data,
                                      std::shared_ptr<const void> owner) {
  HostTensor tensor = borrow(dtype, std::move(shape), data, std::move(owner));
  tensor.is_private_ = true;
  return tensor;
}

HostTensor HostTensor::share() {
  return borrow(dtype_, shape_, data_, storage_ ? std::shared_ptr<const void>(storage_) : owner_);
}

HostTensor HostTensor::share_private() {
  HostTensor shared = share();
  shared.is_private_ = is_private();
  return shared;
}

void HostTensor::allocate() {
  std::int64_t size = 0;
  if (__builtin_mul_overflow(numel_, static_cast<std::int64_t>(size_in_bytes(dtype_)), &size))
    throw UserError(fmt::format("{}{} has more than 2^63 bytes", name(dtype_), shape_to_string(shape_)),
                    "host_tensor_shape");
  if (size == 0) return;
  // calloc gets large zeroed memory directly from the system, untouched.
  const auto bytes = static_cast<std::size_t>(size);
  const std::size_t unit = bytes >= huge_page ? huge_page : alignment, room = bytes + unit - 1;
  void* const memory = std::calloc(room, 1);
  if (!memory)
    throw UserError(fmt::format("no memory for {}{}: {} bytes", name(dtype_), shape_to_string(shape_), size),
                    "out_of_memory");
  storage_ = std::shared_ptr<void>(memory, std::free);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  data_ = static_cast<std::byte*>(memory) + (unit - address % unit) % unit;
  // Best effort: column-wise accesses are up to 50% faster with huge pages.
  if (unit == huge_page) (void)::madvise(data_, bytes / huge_page * huge_page, MADV_HUGEPAGE);
}

void HostTensor::wrong_type(std::size_t element_size) const {
  throw UserError(fmt::format("elements of {}{} seen as another C++ type of {} bytes", name(dtype_),
                              shape_to_string(shape_), element_size),
                  "host_tensor_dtype", "cast() the tensor first");
}

void HostTensor::check_index(std::int64_t i) const {
  if (i < 0 || i >= numel_)
    throw UserError(fmt::format("element {} of {}{}, which has {}", i, name(dtype_), shape_to_string(shape_), numel_),
                    "host_tensor_index");
}

std::int64_t HostTensor::offset(const char* function, std::initializer_list<std::int64_t> position,
                                const std::source_location& where) const {
  const auto fail = [&](const std::string& why) {
    throw UserError(
        Location(where), function,
        fmt::format("position {} of {}{}: {}", shape_to_string(position), name(dtype_), shape_to_string(shape_), why),
        "host_tensor_index", "give one index for each dim, from 0 to its size less 1");
  };
  if (std::cmp_not_equal(position.size(), rank())) fail(fmt::format("it has {} dims", rank()));
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const std::int64_t i = position.begin()[d];
    if (i < 0 || i >= shape_[d]) fail(fmt::format("dim {} has size {}", d, shape_[d]));
    at = at * shape_[d] + i;
  }
  return at;
}

std::int64_t HostTensor::offset(std::initializer_list<std::int64_t> position,
                                const std::source_location& where) const {
  return offset("offset", position, where);
}

HostTensor HostTensor::from(std::vector<std::int64_t> shape, const std::vector<double>& values, DType dtype) {
  const FloatEnvironment environment;
  HostTensor tensor(dtype, std::move(shape));
  check_count(values.size(), tensor);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

HostTensor HostTensor::from_ints(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values,
                                 DType dtype) {
  HostTensor tensor(dtype, std::move(shape));
  check_count(values.size(), tensor);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

HostTensor HostTensor::from_numbers(std::vector<std::int64_t> shape, const NumberList& values, DType dtype) {
  const FloatEnvironment environment;
  HostTensor tensor(dtype, std::move(shape));
  check_count(values.size(), tensor);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_number(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

HostTensor HostTensor::scalar(double value, DType dtype) { return from({}, {value}, dtype); }

std::int64_t HostTensor::only_element(const std::source_location& where) const {
  if (numel_ == 1) return 0;
  throw UserError(Location(where), "item",
                  fmt::format("{}{} has {} elements", name(dtype_), shape_to_string(shape_), numel_),
                  "host_tensor_shape", "at({..}) reads one of several elements, values<T>() all of them");
}

double HostTensor::real_value(std::int64_t i, const char* function, const std::source_location& where) const {
  if (is_complex(dtype_))
    throw UserError(Location(where), function,
                    fmt::format("{}{} has complex elements", name(dtype_), shape_to_string(shape_)),
                    "host_tensor_dtype", "read them with get_complex() or as<std::complex<..>>()");
  return get(i);
}

std::int64_t HostTensor::whole_value(std::int64_t i, std::int64_t low, std::int64_t high, const char* function,
                                     const std::source_location& where) const {
  if (is_complex(dtype_) || is_float(dtype_))
    throw UserError(Location(where), function,
                    fmt::format("{}{} has no integers", name(dtype_), shape_to_string(shape_)), "host_tensor_dtype",
                    fmt::format("read it with {}<double>(), or cast() it, which truncates", function));
  const std::int64_t value = get_int(i);
  if (value < low || value > high)
    throw UserError(Location(where), function, fmt::format("{} is not between {} and {}", value, low, high),
                    "host_tensor_dtype", fmt::format("read it with {}<std::int64_t>()", function));
  return value;
}

double HostTensor::get(std::int64_t i) const {
  check_index(i);
  return with_element_type(dtype_, [&](auto tag) -> double {
    using T = decltype(tag);
    if constexpr (is_complex_type<T>)
      not_possible(dtype_, "get()");
    else
      return convert<double>(load<T>(data_, i));
  });
}

std::int64_t HostTensor::get_int(std::int64_t i) const {
  check_index(i);
  return with_element_type(dtype_, [&](auto tag) -> std::int64_t {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, Flag>)
      return convert<std::int64_t>(load<T>(data_, i));
    else
      not_possible(dtype_, "get_int()");
  });
}

std::complex<double> get_complex(const HostTensor& tensor, std::int64_t i) {
  if (!is_complex(tensor.dtype())) return tensor.get(i);
  tensor.check_index(i);
  if (tensor.dtype() == c64) return std::complex<double>(load<std::complex<float>>(tensor.data(), i));
  return load<std::complex<double>>(tensor.data(), i);
}

void HostTensor::set(std::int64_t i, double value) {
  check_index(i);
  with_element_type(dtype_, [&](auto tag) { store(data_, i, convert<decltype(tag)>(value)); });
}

void HostTensor::set_int(std::int64_t i, std::int64_t value) {
  check_index(i);
  with_element_type(dtype_, [&](auto tag) { store(data_, i, convert<decltype(tag)>(value)); });
}

Number HostTensor::get_number(std::int64_t i) const { return is_float(dtype_) ? Number(get(i)) : get_int(i); }

void HostTensor::set_number(std::int64_t i, const Number& value) {
  if (value.is_double())
    set(i, value.real());
  else
    set_int(i, value.integer());
}

void set_complex(HostTensor& tensor, std::int64_t i, std::complex<double> value) {
  tensor.check_index(i);
  if (tensor.dtype() == c128)
    store(tensor.data(), i, value);
  else if (tensor.dtype() == c64)
    store(tensor.data(), i, std::complex<float>(static_cast<float>(value.real()), static_cast<float>(value.imag())));
  else
    not_possible(tensor.dtype(), "set_complex()");
}

HostTensor HostTensor::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  const FloatEnvironment environment;
  HostTensor result(dtype, shape_);
  if (is_complex(dtype_)) {
    if (!is_complex(dtype)) not_possible(dtype_, fmt::format("cast() to {}", name(dtype)));
    for (std::int64_t i = 0; i < numel_; ++i) set_complex(result, i, get_complex(*this, i));
    return result;
  }
  with_element_type(dtype_, [&](auto from) {
    with_element_type(dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      if constexpr (!is_complex_type<From>)
        for (std::int64_t i = 0; i < numel_; ++i) store(result.data_, i, convert<To>(load<From>(data_, i)));
    });
  });
  return result;
}

HostTensor HostTensor::reshaped(std::vector<std::int64_t> shape) const& {
  return HostTensor(*this).reshaped(std::move(shape));
}

HostTensor HostTensor::reshaped(std::vector<std::int64_t> shape) && {
  if (count_elements(shape) != numel_)
    throw UserError(fmt::format("{}{} has not as many elements as {}", name(dtype_), shape_to_string(shape_),
                                shape_to_string(shape)),
                    "host_tensor_shape");
  HostTensor result = std::move(*this);
  result.shape_ = std::move(shape);
  return result;
}

bool HostTensor::same_bits(const HostTensor& other) const {
  return dtype_ == other.dtype_ && shape_ == other.shape_ &&
         (numel_ == 0 || std::memcmp(data_, other.data_, bytes()) == 0);
}

std::string HostTensor::to_string(std::int64_t edge) const {
  std::string text = fmt::format("{}{} ", name(dtype_), shape_to_string(shape_));
  append_elements(text, *this, 0, 0, std::max<std::int64_t>(edge, 1));
  return text;
}

}  // namespace lathe
