#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "ir/support/tensors/dlpack.h"
#include "runtime/c_api/handles.h"
#include "runtime/parameters/parameter_store.h"
#include "tests/c_api/support.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// An f32 array of another library, which counts the calls of its deleter.
struct ForeignArray {
  std::vector<float> elements;
  std::vector<std::int64_t> shape, strides;
  int deleted = 0;
  dlpack::ManagedTensor managed;

  ForeignArray(std::vector<std::int64_t> sizes, std::vector<float> values, std::vector<std::int64_t> steps = {})
      : elements(std::move(values)), shape(std::move(sizes)), strides(std::move(steps)) {
    managed.array.data = elements.data();
    managed.array.ndim = static_cast<std::int32_t>(shape.size());
    managed.array.shape = shape.data();
    managed.array.strides = strides.empty() ? nullptr : strides.data();
    managed.context = this;
    managed.deleter = [](dlpack::ManagedTensor* self) { ++static_cast<ForeignArray*>(self->context)->deleted; };
  }
  ForeignArray(const ForeignArray&) = delete;
  DLManagedTensor* given() { return reinterpret_cast<DLManagedTensor*>(&managed); }
};

/// A tensor that Lathe gave.
struct Given {
  dlpack::ManagedTensor* tensor;
  explicit Given(DLManagedTensor* from) : tensor(reinterpret_cast<dlpack::ManagedTensor*>(from)) {}
  Given(const Given&) = delete;
  ~Given() { tensor->deleter(tensor); }
  float* data() const { return static_cast<float*>(tensor->array.data); }
  std::vector<float> floats(std::size_t count) const { return {data(), data() + count}; }
};

/// A copy of a value on a GPU.
struct OtherCopy final : DeviceTensor {
  void copy_to(HostTensor& host) override { host.set(0, 5); }
  dlpack::Device device() const override { return {dlpack::Device::cuda, 0}; }
};

}  // namespace

TEST_CASE("c api: DLPack inputs are read in place, and returned when they are replaced") {
  ForeignArray first({2, 3}, {1, 2, 3, 4, 5, 6}), second({2, 3}, {1, 4, 2, 5, 3, 6}, {1, 2}),
      third({1, 3}, {1, 1, 1});
  {
    SmallCall small;
    check_ok(lathe_call_set_input_dlpack(small.call.get(), "x", first.given()));
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "sum") == std::vector<float>{46});
    first.elements[0] = 2;
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "sum") == std::vector<float>{47});
    CHECK(first.deleted == 0);
    check_ok(lathe_call_set_input_dlpack(small.call.get(), "x", second.given()));
    CHECK(first.deleted == 1);
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "y") == std::vector<float>{1, 4, 9, 4, 10, 18});
    second.elements[0] = 2;  // a strided array is read in place too
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "sum") == std::vector<float>{47});
    check_ok(lathe_call_set_input(small.call.get(), "x", LATHE_F32, 2, small.x_shape, nullptr, small.x));
    CHECK(second.deleted == 1);
    check_ok(lathe_call_set_input_dlpack(small.call.get(), "x", third.given()));
    check_ok(lathe_call_run(small.call.get()));
    CHECK(third.deleted == 0);
  }
  CHECK(first.deleted == 1);
  CHECK(second.deleted == 1);
  CHECK(third.deleted == 1);
}

TEST_CASE("c api: DLPack memory for outputs") {
  ForeignArray y({2, 3}, std::vector<float>(6)), sum({}, std::vector<float>(1));
  SmallCall small;
  check_ok(lathe_call_set_output_dlpack(small.call.get(), "y", y.given()));
  check_ok(lathe_call_set_output_dlpack(small.call.get(), "sum", sum.given()));
  check_ok(lathe_call_run(small.call.get()));
  CHECK(y.elements == std::vector<float>{1, 4, 9, 4, 10, 18});
  CHECK(sum.elements == std::vector<float>{46});
  check_ok(lathe_call_clear(small.call.get()));
  CHECK(y.deleted == 1);
  CHECK(sum.deleted == 1);
}

TEST_CASE("c api: a result outlives the call that it was taken from") {
  DLManagedTensor *y = nullptr, *again = nullptr;
  {
    SmallCall small;
    CHECK(label_of(lathe_call_take_output_dlpack(small.call.get(), "y", &y)) == "output_unset");
    check_ok(lathe_call_run(small.call.get()));
    const void* memory = nullptr;
    lathe_array array = empty_array();
    check_ok(lathe_call_output(small.call.get(), "y", &array));
    memory = array.data;
    check_ok(lathe_call_take_output_dlpack(small.call.get(), "y", &y));
    CHECK(reinterpret_cast<dlpack::ManagedTensor*>(y)->array.data == memory);  // no copy
    CHECK(label_of(lathe_call_take_output_dlpack(small.call.get(), "y", &again)) == "output_unset");
    CHECK(again == nullptr);
    CHECK(label_of(lathe_call_output(small.call.get(), "y", &array)) == "output_unset");
    small.x[0] = 100;
    check_ok(lathe_call_run(small.call.get()));  // has new memory
    check_ok(lathe_call_take_output_dlpack(small.call.get(), "y", &again));
  }
  const Given first(y), second(again);
  CHECK(first.tensor->array.ndim == 2);
  CHECK(first.tensor->array.shape[1] == 3);
  CHECK(first.tensor->array.strides[0] == 3);
  CHECK(first.floats(6) == std::vector<float>{1, 4, 9, 4, 10, 18});
  CHECK(second.floats(1) == std::vector<float>{100});
}

TEST_CASE("c api: parameters share memory by DLPack") {
  ForeignArray w({3}, {1, 1, 1});
  DLManagedTensor* shared = nullptr;
  {
    SmallCall small;
    check_ok(lathe_parameters_set_dlpack(small.parameters.get(), "w", w.given()));
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "sum") == std::vector<float>{21});
    w.elements[2] = 2;
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "sum") == std::vector<float>{30});
    CHECK(w.deleted == 0);

    check_ok(lathe_parameters_share_dlpack(small.parameters.get(), "w", &shared));
    CHECK(Given(shared).data() == w.elements.data());
    const float own[] = {2, 2, 2};
    check_ok(lathe_parameters_set(small.parameters.get(), "w", LATHE_F32, 1, small.w_shape, nullptr, own));
    CHECK(w.deleted == 1);
    check_ok(lathe_parameters_share_dlpack(small.parameters.get(), "w", &shared));
    static_cast<float*>(reinterpret_cast<dlpack::ManagedTensor*>(shared)->array.data)[0] = 0;
    check_ok(lathe_call_run(small.call.get()));
    CHECK(output_of(small.call.get(), "y") == std::vector<float>{0, 4, 6, 0, 10, 12});
  }
  CHECK(Given(shared).floats(3) == std::vector<float>{0, 2, 2});
  CHECK(w.deleted == 1);
}

TEST_CASE("c api: training updates a parameter in the memory of another library") {
  ForeignArray w({2}, {1, 2});
  const auto graph = parsed(R"(graph @g(parameter %w: f32[2]) {
  %1 = square %w
  %loss = sum %1 {dims=[0]}
  output "loss" %loss
})");
  const char* const names[] = {"lr"};
  const double rate = 0.25;
  const auto step = made<lathe_graph>(lathe_graph_training_step, graph.get(), "loss", "sgd", names, &rate, 1);
  const auto executable = compiled(step);
  const auto parameters = made<lathe_parameters>(lathe_executable_parameters, executable.get());
  check_ok(lathe_parameters_init_states(parameters.get(), step.get(), 0, nullptr, nullptr, 0));
  check_ok(lathe_parameters_set_dlpack(parameters.get(), "w", w.given()));
  const auto call = made<lathe_call>(lathe_call_create, executable.get());
  check_ok(lathe_call_run(call.get()));
  CHECK(w.elements == std::vector<float>{0.5, 1});
}

TEST_CASE("c api: a tensor that was given is returned on every error") {
  SmallCall small;
  lathe_call* call = small.call.get();
  DLManagedTensor* none = nullptr;
  const auto fails = [](const std::string& label, const auto& call_with, const auto& change) {
    ForeignArray array({2, 3}, std::vector<float>(6));
    change(array.managed.array);
    CHECK(label_of(call_with(array.given())) == label);
    CHECK(array.deleted == 1);
  };
  const auto input = [&](DLManagedTensor* t) { return lathe_call_set_input_dlpack(call, "x", t); };
  const auto output = [&](DLManagedTensor* t) { return lathe_call_set_output_dlpack(call, "y", t); };
  const auto parameter = [&](DLManagedTensor* t) {
    return lathe_parameters_set_dlpack(small.parameters.get(), "w", t);
  };
  const auto same = [](dlpack::Array&) {};
  fails("null_argument", [](DLManagedTensor* t) { return lathe_call_set_input_dlpack(nullptr, "x", t); }, same);
  fails("null_argument", [](DLManagedTensor* t) { return lathe_call_set_output_dlpack(nullptr, "y", t); }, same);
  fails("null_argument", [](DLManagedTensor* t) { return lathe_parameters_set_dlpack(nullptr, "w", t); }, same);
  fails("null_argument", [&](DLManagedTensor* t) { return lathe_call_set_input_dlpack(call, nullptr, t); }, same);
  fails("argument_unknown", [&](DLManagedTensor* t) { return lathe_call_set_input_dlpack(call, "z", t); }, same);
  fails("output_unknown", [&](DLManagedTensor* t) { return lathe_call_set_output_dlpack(call, "z", t); }, same);
  fails("argument_shape", parameter, same);
  fails("dlpack_device", input, [](dlpack::Array& array) { array.device.type = dlpack::Device::cuda; });
  fails("dlpack_device", output, [](dlpack::Array& array) { array.device.type = dlpack::Device::cuda; });
  fails("dlpack_device", parameter, [](dlpack::Array& array) { array.device.type = dlpack::Device::cuda; });
  fails("dlpack_dtype", input, [](dlpack::Array& array) { array.dtype.bits = 12; });
  fails("dlpack_shape", output, [](dlpack::Array& array) { array.ndim = -1; });
  fails("dlpack_shape", input, [](dlpack::Array& array) { array.shape = nullptr; });
  fails("dlpack_shape", parameter, [](dlpack::Array& array) { array.data = nullptr; });
  fails("host_tensor_alignment", parameter, [](dlpack::Array& array) { array.byte_offset = 1; });
  CHECK(label_of(lathe_parameters_share_dlpack(small.parameters.get(), "v", &none)) == "argument_unknown");
  CHECK(label_of(lathe_call_take_output_dlpack(call, "z", &none)) == "output_unknown");
  CHECK(none == nullptr);
  check_ok(lathe_call_run(call));  // the failed calls changed nothing
  CHECK(output_of(call, "sum") == std::vector<float>{46});
}

TEST_CASE("c api: a value that a GPU has too is copied, not shared") {
  SmallCall small;
  StoredTensor& stored = small.parameters->parameters.store()->values.find("w")->second;
  stored.device = std::make_shared<OtherCopy>();
  stored.device_is_current = true, stored.host_is_current = false;
  DLManagedTensor* shared = nullptr;
  CHECK(label_of(lathe_parameters_share_dlpack(small.parameters.get(), "w", &shared)) == "dlpack_device");
  CHECK(std::string(lathe_last_error(LATHE_ERROR_HINT)) == "copy the value with lathe_parameters_get()");
  CHECK(shared == nullptr);
  float w[3] = {};
  check_ok(lathe_parameters_get(small.parameters.get(), "w", LATHE_F32, 1, small.w_shape, nullptr, w));
  CHECK(w[0] == 5);
}
