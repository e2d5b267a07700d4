#include "models/import/onnx/tensor_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "ir/support/error.h"

namespace lathe::onnx {

namespace {

using Bytes = std::span<const std::byte>;
using Sizes = std::vector<std::int64_t>;
using importing::numel;

constexpr std::string_view damaged = "the file is damaged or is not an ONNX model";

/// Numbers of the format's enum, in their order.
constexpr std::string_view element_names[] = {
    "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
    "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
    "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
    "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};

/// Stores numbers of the lists float_data, int32_data, int64_data and double_data. 16-bit floats are stored as bits,
/// complex numbers as pairs.
template <class T, class From>
void store(const std::vector<From>& numbers, HostTensor& tensor) {
  auto* to = reinterpret_cast<T*>(tensor.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) to[i] = static_cast<T>(numbers[i]);
}

void store_numbers(const TensorProto& from, HostTensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f32:
    case DType::c64: return store<float>(from.floats, tensor);
    case DType::f64:
    case DType::c128: return store<double>(from.doubles, tensor);
    case DType::i64: return store<std::int64_t>(from.integers, tensor);
    case DType::i32: return store<std::int32_t>(from.integers, tensor);
    case DType::bf16:
    case DType::f16: return store<std::uint16_t>(from.integers, tensor);
    case DType::i8: return store<std::int8_t>(from.integers, tensor);
    case DType::u8: return store<std::uint8_t>(from.integers, tensor);
    case DType::boolean: return store<bool>(from.integers, tensor);
  }
}

/// Returns the numbers per element and the numbers that the tensor lists for its dtype.
std::pair<std::size_t, std::size_t> listed_numbers(const TensorProto& tensor, DType dtype) {
  switch (dtype) {
    case DType::f32: return {1, tensor.floats.size()};
    case DType::c64: return {2, tensor.floats.size()};
    case DType::f64: return {1, tensor.doubles.size()};
    case DType::c128: return {2, tensor.doubles.size()};
    default: return {1, tensor.integers.size()};
  }
}

void require_bytes(std::uint64_t count, std::uint64_t size, std::uint64_t elements, DType dtype,
                   const std::string& owner) {
  if (count == elements * size) return;
  throw UserError(fmt::format("{} has {} bytes of data for {} elements of {}", owner, count, elements, name(dtype)),
                  "import_file", damaged);
}

[[noreturn]] void fail_external(const std::string& owner, const std::string& text) {
  throw UserError(fmt::format("{}: {}", owner, text), "import_external",
                  "external data are in a file next to the model or in a folder below it");
}

struct Place {
  Text location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

Place place_of(const TensorProto& tensor, const std::string& owner) {
  Place place;
  const auto number = [&](Text key, Text text) {
    std::uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size())
      fail_external(owner, fmt::format("the {} of the external data is '{}', not a number", key, text));
    return value;
  };
  for (const auto& [key, value] : tensor.external) {
    if (key == "location")
      place.location = value;
    else if (key == "offset")
      place.offset = number(key, value);
    else if (key == "length")
      place.length = number(key, value);
    else if (key != "checksum" && key != "basepath")  // a SHA-1 of the file, and a folder that writers used
      fail_external(owner, fmt::format("the external data have the unknown key '{}'", key));
  }
  return place;
}

}  // namespace

std::string element_name(std::int64_t element_type) {
  if (element_type < 0 || element_type >= static_cast<std::int64_t>(std::size(element_names)))
    return fmt::format("element type {}", element_type);
  return std::string(element_names[element_type]);
}

DType dtype_of(std::int64_t element_type, const std::string& owner) {
  const bool is_in_range = element_type >= 0 && element_type < static_cast<std::int64_t>(std::size(element_names));
  switch (is_in_range ? static_cast<ElementType>(element_type) : ElementType::undefined) {
    case ElementType::float32: return f32;
    case ElementType::uint8: return u8;
    case ElementType::int8: return i8;
    case ElementType::int32: return i32;
    case ElementType::int64: return i64;
    case ElementType::boolean: return boolean;
    case ElementType::float16: return f16;
    case ElementType::float64: return f64;
    case ElementType::complex64: return c64;
    case ElementType::complex128: return c128;
    case ElementType::bfloat16: return bf16;
    case ElementType::string:
    case ElementType::undefined: break;
  }
  throw UserError(fmt::format("{} has elements of type {}", owner, element_name(element_type)), "import_dtype",
                  "Lathe has FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT8, UINT8, INT32, INT64, BOOL and complex numbers");
}

TensorData::TensorData(std::filesystem::path path, std::shared_ptr<const MappedFile> model)
    : path_(std::move(path)), model_(std::move(model)) {}

std::string TensorData::owner(const TensorProto& tensor) const {
  return fmt::format(
      "{}: the tensor {}", path_.filename().string(),
      tensor.name.empty() ? fmt::format("at byte {}", tensor.offset) : fmt::format("'{}'", tensor.name));
}

HostTensor TensorData::external(const TensorProto& tensor, DType dtype, const Sizes& shape) {
  const std::string who = owner(tensor);
  const Place place = place_of(tensor, who);
  const std::filesystem::path relative(place.location);
  const bool leaves =
      relative.is_absolute() || std::ranges::any_of(relative, [](const auto& part) { return part == ".."; });
  if (leaves || place.location.empty() || place.location.find('\0') != Text::npos)
    fail_external(who, fmt::format("the external data are in '{}', outside of the model's folder", place.location));
  auto& file = files_[std::string(place.location)];
  if (!file) file = MappedFile::open(path_.parent_path() / relative);
  const std::uint64_t size = file->bytes().size(), wanted = numel(tensor.dims, who) * size_in_bytes(dtype);
  if (place.offset > size || place.length.value_or(wanted) > size - place.offset)
    fail_external(who, fmt::format("{} bytes at byte {} are not in '{}', which has {} bytes",
                                   place.length.value_or(wanted), place.offset, place.location, size));
  require_bytes(place.length.value_or(wanted), size_in_bytes(dtype), numel(tensor.dims, who), dtype, who);
  return importing::mapped_tensor(dtype, shape, Bytes(file->bytes()).subspan(place.offset, wanted), file);
}

HostTensor TensorData::read(const TensorProto& tensor) {
  const std::string who = owner(tensor);
  const DType dtype = dtype_of(tensor.type, who);
  const std::uint64_t elements = numel(tensor.dims, who);
  if (tensor.is_external) return external(tensor, dtype, tensor.dims);
  if (tensor.raw) {
    require_bytes(tensor.raw->size(), size_in_bytes(dtype), elements, dtype, who);
    return importing::mapped_tensor(dtype, tensor.dims, *tensor.raw, model_);
  }
  const auto [per_element, numbers] = listed_numbers(tensor, dtype);
  if (numbers != elements * per_element)
    throw UserError(fmt::format("{} has {} numbers for {} elements of {}", who, numbers, elements, name(dtype)),
                    "import_file", damaged);
  HostTensor result(dtype, tensor.dims);
  store_numbers(tensor, result);
  return result;
}

}  // namespace lathe::onnx
