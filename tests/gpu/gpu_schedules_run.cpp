#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "bench/op_cases.h"
#include "tests/gpu/gpu_device.h"
#include "tests/support/compare_tensors.h"

/// Products and attentions large enough for every schedule of tensor cores, on a real GPU against the CPU.
using namespace lathe;

namespace {

/// Two runs on the GPU, of which the second finds the results of the first, against one on the CPU; and their bits.
void check(const bench::OpCase& made, const CompileOptions& options, double tolerance) {
  Executable found = compile(made.graph, options), expected = compile(made.graph);
  for (Executable* executable : {&found, &expected}) {
    executable->parameters().set(made.states);
    executable->run({});
  }
  const Tensors once = found.parameters().values();
  for (const auto& [name, value] : expected.parameters().values()) {
    INFO(name);
    CHECK(test::error_of(once.at(name), value) <= tolerance);
  }
  found.run({});
  for (const auto& [name, value] : found.parameters().values()) {
    INFO(name);
    CHECK(value.same_bits(once.at(name)));
  }
}

}  // namespace

TEST_CASE("products of all schedules", "[products]") {
  const auto options = test::gpu_options();
  if (!options) return;
  using bench::Product;
  for (const auto& [m, n, k] : {std::array{2048, 2048, 256},
                                {4096, 768, 768},
                                {2000, 1000, 520},
                                {300, 260, 72},
                                {129, 70, 33},
                                {16, 3072, 768},
                                {1, 2304, 768},
                                {768, 512, 16384},
                                {8192, 768, 64}})
    for (const DType dtype : {bf16, f16, f32})
      for (const Product product : {Product::forward, Product::input_gradient, Product::weight_gradient}) {
        const bench::ProductShape shape{.name = "", .m = m, .n = n, .k = k, .product = product, .dtype = dtype};
        INFO(fmt::format("{} x {} x {} {} {}", m, n, k, lathe::name(dtype), static_cast<int>(product)));
        check(bench::product_case(shape), *options, dtype == f32 ? 1e-5 : dtype == f16 ? 1e-3 : 8e-3);
      }
}

TEST_CASE("attentions of all schedules", "[attentions]") {
  const auto options = test::gpu_options();
  if (!options) return;
  for (const DType dtype : {bf16, f16, f32})
    for (const std::int64_t d : {16, 64, 80, 128})
      for (const std::int64_t length : {1, 100, 512, 1000})
        for (const bool causal : {false, true}) {
          const bench::AttentionShape shape{.batch = 2,
                                            .heads = 4,
                                            .length = length,
                                            .d = d,
                                            .causal = causal,
                                            .dtype = dtype,
                                            .groups = d == 128 ? 2 : 1,
                                            .window = causal && length == 1000 ? 300 : 0};
          INFO(shape.name() << " " << lathe::name(dtype));
          check(bench::attention_case(shape, true), *options, dtype == f32 ? 1e-5 : dtype == f16 ? 4e-3 : 3e-2);
        }
}
