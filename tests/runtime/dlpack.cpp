#include "ir/support/tensors/dlpack.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <functional>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "tests/support/texts/error_label.h"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif

using namespace lathe;

namespace {

/// A dense row-major array of another library, which counts how often it was deleted.
struct Stranger {
  std::vector<float> values;
  std::vector<std::int64_t> shape, strides;
  int deleted = 0;
  dlpack::ManagedTensor managed;

  Stranger(std::vector<float> all, std::vector<std::int64_t> sizes, std::vector<std::int64_t> steps = {})
      : values(std::move(all)), shape(std::move(sizes)), strides(std::move(steps)) {
    managed.array.data = values.data();
    managed.array.ndim = static_cast<std::int32_t>(shape.size());
    managed.array.shape = shape.data();
    managed.array.strides = strides.empty() ? nullptr : strides.data();
    managed.context = this;
    managed.deleter = [](dlpack::ManagedTensor* self) { ++static_cast<Stranger*>(self->context)->deleted; };
  }
};

std::string label_of(dlpack::ManagedTensor& given) {
  return test::error_label([&] { (void)from_dlpack(&given); });
}

}  // namespace

TEST_CASE("DLPack: the structures have the layout of the ABI") {
  CHECK(sizeof(dlpack::Device) == 8);
  CHECK(sizeof(dlpack::DataType) == 4);
  CHECK(offsetof(dlpack::Array, device) == 8);
  CHECK(offsetof(dlpack::Array, ndim) == 16);
  CHECK(offsetof(dlpack::Array, dtype) == 20);
  CHECK(offsetof(dlpack::Array, shape) == 24);
  CHECK(offsetof(dlpack::Array, strides) == 32);
  CHECK(offsetof(dlpack::Array, byte_offset) == 40);
  CHECK(offsetof(dlpack::ManagedTensor, context) == 48);
  CHECK(offsetof(dlpack::ManagedTensor, deleter) == 56);
#ifdef DLPACK_VERSION
  CHECK(sizeof(dlpack::ManagedTensor) == sizeof(DLManagedTensor));
  CHECK(offsetof(dlpack::ManagedTensor, deleter) == offsetof(DLManagedTensor, deleter));
  CHECK(offsetof(dlpack::Array, byte_offset) == offsetof(DLTensor, byte_offset));
  CHECK(dlpack::Device::cuda_host == kDLCUDAHost);
  CHECK(dlpack::DataType::bfloat == kDLBfloat);
  CHECK(dlpack::DataType::complex == kDLComplex);
#endif
}

TEST_CASE("DLPack: an array is imported without a copy, and deleted once with the tensor") {
  Stranger dense({1, 2, 3, 4, 5, 6}, {2, 3});
  {
    const HostTensor taken = from_dlpack(&dense.managed);
    CHECK(taken.data() == reinterpret_cast<std::byte*>(dense.values.data()));
    CHECK(taken.at({1, 2}) == 6);
    CHECK(dense.deleted == 0);
  }
  CHECK(dense.deleted == 1);

  Stranger columns({1, 2, 3, 4, 5, 6}, {2, 3}, {1, 2});
  const HostTensor copied = from_dlpack(&columns.managed);
  CHECK(columns.deleted == 1);
  CHECK(copied.same_bits(HostTensor::from({2, 3}, {1, 3, 5, 2, 4, 6})));

  Stranger offset({1, 2, 3, 4}, {2});
  offset.managed.array.byte_offset = 8;
  offset.managed.deleter = nullptr;
  CHECK(from_dlpack(&offset.managed).same_bits(HostTensor::from({2}, {3, 4})));
}

TEST_CASE("DLPack: exported arrays round-trip with the same bits, for every dtype and rank") {
  for (const DType dtype : {f64, f32, bf16, f16, i64, i32, boolean, c64, c128})
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {3}, {2, 3}, {2, 0, 3}}) {
      HostTensor value(dtype, shape);
      for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i % 2 + 1));
      const std::byte* memory = value.data();
      const HostTensor before = value;
      dlpack::ManagedTensor* given = to_dlpack(std::move(value));
      CHECK(given->array.data == memory);
      const HostTensor back = from_dlpack(given);
      CHECK(back.same_bits(before));
    }
  dlpack::ManagedTensor* given = to_dlpack(HostTensor(f32, {2, 3, 4}));
  CHECK(std::vector<std::int64_t>(given->array.strides, given->array.strides + 3) ==
        std::vector<std::int64_t>{12, 4, 1});
  given->deleter(given);
}

TEST_CASE("DLPack: arrays are arguments and results of a run without a copy") {
  Executable exe = compile(
      ir::parse_graph("graph @g(input %x: f32[n, 2]) {\n  %1 = mul %x, %x\n  output \"y\" %1\n}"), {.threads = 1});
  Stranger x({1, 2, 3, 4}, {2, 2}, {1, 2}), y({0, 0, 0, 0}, {2, 2});
  exe.run({{"x", view_of(x.managed.array)}}, {{"y", writable_view_of(y.managed.array)}});
  CHECK(y.values == std::vector<float>{1, 9, 4, 16});
  CHECK(x.deleted + y.deleted == 0);
}

TEST_CASE("DLPack: unsupported arrays are errors, and are deleted") {
  const auto error_of = [](const std::function<void(dlpack::Array&)>& change) {
    Stranger wrong({1, 2}, {2});
    change(wrong.managed.array);
    const std::string label = label_of(wrong.managed);
    CHECK(wrong.deleted == 1);
    return label;
  };
  CHECK(error_of([](auto& a) { a.device.type = dlpack::Device::cuda; }) == "dlpack_device");
  CHECK(error_of([](auto& a) { a.dtype.lanes = 4; }) == "dlpack_dtype");
  CHECK(error_of([](auto& a) { a.dtype = {dlpack::DataType::unsigned_integer, 16, 1}; }) == "dlpack_dtype");
  CHECK(error_of([](auto& a) { a.shape[0] = -1; }) == "dlpack_shape");
  CHECK(error_of([](auto& a) { a.shape = nullptr; }) == "dlpack_shape");
  CHECK(error_of([](auto& a) { a.ndim = -1; }) == "dlpack_shape");
  CHECK(error_of([](auto& a) { a.data = nullptr; }) == "dlpack_shape");
  CHECK(error_of([](auto& a) { a.byte_offset = 2; }) == "host_tensor_alignment");
}
