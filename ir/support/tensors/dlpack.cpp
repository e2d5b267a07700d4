#include "ir/support/tensors/dlpack.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "ir/support/error.h"

namespace lathe {

namespace {

using dlpack::Array;
using dlpack::DataType;
using dlpack::Device;
using dlpack::ManagedTensor;

constexpr std::pair<DType, DataType> dtypes[] = {
    {f64, {DataType::real, 64, 1}},    {f32, {DataType::real, 32, 1}},           {f16, {DataType::real, 16, 1}},
    {bf16, {DataType::bfloat, 16, 1}}, {i64, {DataType::integer, 64, 1}},        {i32, {DataType::integer, 32, 1}},
    {i8, {DataType::integer, 8, 1}},   {u8, {DataType::unsigned_integer, 8, 1}}, {boolean, {DataType::boolean, 8, 1}},
    {c64, {DataType::complex, 64, 1}}, {c128, {DataType::complex, 128, 1}},
};

DType dtype_of(const DataType& given) {
  for (const auto& [dtype, same] : dtypes)
    if (given.code == same.code && given.bits == same.bits && given.lanes == same.lanes) return dtype;
  throw UserError(fmt::format("DLPack: elements of code {}, {} bits, {} lanes", given.code, given.bits, given.lanes),
                  "dlpack_dtype", "convert them to f64, f32, bf16, f16, i64, i32, i8, u8, bool, c64 or c128 before");
}

DataType data_type_of(DType dtype) {
  for (const auto& [own, same] : dtypes)
    if (own == dtype) return same;
  throw InternalError("a dtype that DLPack lacks");
}

void require_shape(bool holds, const std::string& message) {
  if (!holds)
    throw UserError("DLPack: " + message, "dlpack_shape",
                    "give each dim a size of 0 or more, and elements their memory");
}

/// Validates an array and returns a view of it.
TensorRef checked(const Array& array) {
  if (array.device.type != Device::cpu && array.device.type != Device::cuda_host)
    throw UserError(fmt::format("DLPack: the memory is that of device type {}", array.device.type), "dlpack_device",
                    "copy the array to the CPU before");
  TensorRef view;
  view.dtype = dtype_of(array.dtype);
  require_shape(array.ndim >= 0 && (array.ndim == 0 || array.shape),
                fmt::format("{} dims without sizes", array.ndim));
  view.shape.assign(array.shape, array.shape + array.ndim);
  for (const std::int64_t size : view.shape) require_shape(size >= 0, "the shape is " + shape_to_string(view.shape));
  require_shape(array.data || count_elements(view.shape) == 0, shape_to_string(view.shape) + " without memory");
  if (array.strides) view.strides.assign(array.strides, array.strides + array.ndim);
  if (array.data) view.data = static_cast<std::byte*>(array.data) + array.byte_offset;
  return view;
}

/// State owned by to_dlpack()'s result until its deleter is called.
struct Given {
  explicit Given(HostTensor given) : value(std::move(given)), shape(value.shape()), strides(shape.size()) {
    std::int64_t step = 1;
    for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
    managed.array = {.data = value.data(),
                     .device = {},
                     .ndim = static_cast<std::int32_t>(shape.size()),
                     .dtype = data_type_of(value.dtype()),
                     .shape = shape.data(),
                     .strides = strides.data(),
                     .byte_offset = 0};
    managed.context = this;
    managed.deleter = [](ManagedTensor* self) { delete static_cast<Given*>(self->context); };
  }

  HostTensor value;
  std::vector<std::int64_t> shape, strides;
  ManagedTensor managed;
};

}  // namespace

ConstTensorRef view_of(const Array& array) {
  TensorRef view = checked(array);
  return {view.dtype, std::move(view.shape), view.data, std::move(view.strides)};
}

TensorRef writable_view_of(const Array& array) { return checked(array); }

HostTensor from_dlpack(ManagedTensor* taken) {
  const std::shared_ptr<const void> owner(taken, [](ManagedTensor* it) {
    if (it->deleter) it->deleter(it);
  });
  const TensorRef view = checked(taken->array);
  if (view.data && (view.strides.empty() || is_row_major(view.shape, view.strides)))
    return HostTensor::borrow(view.dtype, view.shape, view.data, owner);
  HostTensor copy(view.dtype, view.shape);
  if (copy.numel() > 0) gather({view.dtype, view.shape, view.data, view.strides}, copy.data());
  return copy;
}

ManagedTensor* to_dlpack(HostTensor given) {
  auto kept = std::make_unique<Given>(std::move(given));
  return &kept.release()->managed;
}

}  // namespace lathe
