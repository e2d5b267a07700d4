#include <malloc.h>

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "tests/runtime/executable/count_allocations.h"
#include "tests/support/texts/error_label.h"

using namespace lathe;
using test::error_label;

namespace {

/// A matmul with temporaries, a reduction and a state.
constexpr std::string_view model =
    R"(graph @model(input %x: f32[n, 64], parameter %w: f32[64, 64], state %s: f32[64]) {
  %1 = contract %x, %w {spec="ab,cb->ac"}
  %2 = softmax %1 {dim=-1}
  %3 = contract %2, %w {spec="ab,cb->ac"}
  %4 = sum %3 {dims=[0], keepdim=false}
  %5 = add %s, %4
  output "y" %3
  update %s <- %5
})";

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.01f * static_cast<float>(i % 37);
  return values;
}

HostTensor tensor_of(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  HostTensor tensor(f32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

Executable make(const DimBindings& reserve = {}) {
  Parameters weights({{"w", tensor_of(counting(64 * 64), {64, 64})}, {"s", HostTensor(f32, {64})}});
  return compile(ir::parse_graph(model), {.parameters = weights, .reserve = reserve, .threads = 2});
}

}  // namespace

TEST_CASE("runs read and write caller memory with any strides and give the same bits") {
  Executable exe = make(), reference = make();
  const std::vector<float> x = counting(5 * 64);
  const HostTensor want = reference.run({{"x", tensor_of(x, {5, 64})}}).at("y");

  std::vector<float> y(5 * 64, -1);
  exe.run(InputRefs{{"x", {f32, {5, 64}, x.data()}}}, OutputRefs{{"y", {f32, {5, 64}, y.data()}}});
  CHECK(tensor_of(y, {5, 64}).same_bits(want));

  // The same values transposed in the caller's memory; the result goes to the even columns of wider rows.
  std::vector<float> transposed(64 * 5), wide(5 * 128, -1);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 64; ++j) transposed[j * 5 + i] = x[i * 64 + j];
  exe.run(InputRefs{{"x", {f32, {5, 64}, transposed.data(), {1, 5}}}},
          OutputRefs{{"y", {f32, {5, 64}, wide.data(), {128, 2}}}});
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 64; ++j) {
      CHECK(wide[i * 128 + 2 * j] == want.as<const float>()[i * 64 + j]);
      CHECK(wide[i * 128 + 2 * j + 1] == -1);
    }
}

TEST_CASE("a run with the sizes of the previous run allocates nothing") {
  Executable exe = make();
  const std::vector<float> x = counting(7 * 64);
  std::vector<float> y(7 * 64);
  const InputRefs inputs{{"x", {f32, {7, 64}, x.data()}}};
  const OutputRefs outputs{{"y", {f32, {7, 64}, y.data()}}};
  exe.run(inputs, outputs);
  const std::int64_t before = test::allocations();
  const struct mallinfo2 heap = mallinfo2();
  for (int i = 0; i < 3; ++i) exe.run(inputs, outputs);
  const struct mallinfo2 after = mallinfo2();
  CHECK(test::allocations() == before);
  CHECK(after.uordblks == heap.uordblks);
  CHECK(after.hblkhd == heap.hblkhd);
}

TEST_CASE("outputs of the previous run are reused, without an allocation if sizes are unchanged") {
  Executable exe = make(), reference = make();
  const std::vector<float> x = counting(7 * 64);
  const InputRefs inputs{{"x", {f32, {7, 64}, x.data()}}};
  Tensors outputs{{"y", HostTensor(f32, {3})}, {"left", HostTensor::scalar(1)}};
  exe.run(inputs, outputs);
  CHECK(outputs.size() == 1);
  CHECK(outputs.at("y").same_bits(reference.run({{"x", tensor_of(x, {7, 64})}}).at("y")));
  const std::byte* const place = outputs.at("y").data();
  const std::int64_t before = test::allocations();
  for (int i = 0; i < 3; ++i) exe.run(inputs, outputs);
  CHECK(test::allocations() == before);
  CHECK(outputs.at("y").data() == place);

  exe.run(InputRefs{{"x", {f32, {2, 64}, x.data()}}}, outputs);
  CHECK(outputs.at("y").shape() == std::vector<std::int64_t>{2, 64});
  CHECK(outputs.at("y").same_bits(reference.run({{"x", tensor_of({x.begin(), x.begin() + 128}, {2, 64})}}).at("y")));
  // An output must not be an input of the same run.
  const HostTensor kept = outputs.at("y");
  CHECK(error_label([&] { exe.run(InputRefs{{"x", outputs.at("y")}}, outputs); }) == "output_overlap");
  CHECK(outputs.at("y").same_bits(kept));
}

TEST_CASE("a run reads Tensors and writes to Tensors or to the caller's memory") {
  Executable exe = make(), reference = make();
  const Tensors inputs{{"x", tensor_of(counting(5 * 64), {5, 64})}};
  const HostTensor want = reference.run(inputs).at("y");
  Tensors outputs;
  exe.run(inputs, outputs);
  CHECK(outputs.at("y").same_bits(want));
  std::vector<float> y(5 * 64);
  exe.run(inputs, OutputRefs{{"y", {f32, {5, 64}, y.data()}}});
  CHECK(tensor_of(y, {5, 64}).same_bits(want));
  exe.run({{"x", inputs.at("x")}}, outputs);
  CHECK(outputs.at("y").same_bits(want));
  exe.run(inputs, outputs);
  const std::int64_t before = test::allocations();
  exe.run(inputs, outputs);
  CHECK(test::allocations() == before);
}

TEST_CASE("sizes up to the reserved ones give the same results, in any order") {
  Executable reserved = make({{"n", 40}}), plain = make();
  for (const std::int64_t n : {3, 40, 1, 0, 17, 90, 5}) {
    const HostTensor x = tensor_of(counting(static_cast<std::size_t>(n) * 64), {n, 64});
    INFO(n);
    CHECK(reserved.run({{"x", x}}).at("y").same_bits(plain.run({{"x", x}}).at("y")));
    CHECK(reserved.parameters().get("s").same_bits(plain.parameters().get("s")));
  }
}

TEST_CASE("caller memory that does not fit is an error before the run") {
  Executable exe = make();
  std::vector<float> x = counting(5 * 64), y(6 * 64);
  const InputRefs in{{"x", {f32, {5, 64}, x.data()}}};
  const TensorRef right{f32, {5, 64}, y.data()};
  CHECK(error_label([&] { exe.run(in, OutputRefs{}); }) == "output_missing");
  CHECK(error_label([&] { exe.run(in, OutputRefs{{"y", right}, {"z", right}}); }) == "output_unknown");
  CHECK(error_label([&] { exe.run(in, OutputRefs{{"y", {f32, {6, 64}, y.data()}}}); }) == "output_type");
  CHECK(error_label([&] { exe.run(in, OutputRefs{{"y", {f64, {5, 64}, y.data()}}}); }) == "output_type");
  CHECK(error_label([&] { exe.run(in, OutputRefs{{"y", {f32, {5, 64}, x.data()}}}); }) == "output_overlap");
  CHECK(error_label([&] { exe.run(in, OutputRefs{{"y", {f32, {5, 64}, y.data(), {64}}}}); }) == "argument_strides");
  CHECK(error_label([&] {
          exe.run(in, OutputRefs{{"y", {f32, {5, 64}, reinterpret_cast<std::byte*>(y.data()) + 1}}});
        }) == "argument_alignment");
  CHECK(error_label([&] { exe.run(InputRefs{{"x", {f32, {5, 63}, x.data()}}}, OutputRefs{{"y", right}}); }) ==
        "argument_shape");
  CHECK(exe.parameters().get("s").same_bits(HostTensor(f32, {64})));
  exe.run(in, OutputRefs{{"y", right}});
}
