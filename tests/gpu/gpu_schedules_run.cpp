#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "bench/cases/op_cases.h"
#include "ir/support/error.h"
#include "tests/gpu/gpu_device.h"
#include "tests/support/tensors/compare_tensors.h"

/// Matmuls and attention large enough for every tensor core schedule, on a real GPU compared with the CPU.
using namespace lathe;

namespace {

struct Run {
  std::string what;
  bench::OpCase made;
  double tolerance;
  Tensors expected = {}, once = {}, twice = {};
  std::string error = {};
};

/// Compares two runs on the GPU, the second of which starts from the results of the first, with one on the CPU.
void run(Run& r, const CompileOptions& options) {
  try {
    Executable found = compile(r.made.graph, options), expected = compile(r.made.graph, {.threads = 1});
    for (Executable* executable : {&found, &expected}) {
      executable->parameters().set(r.made.states);
      executable->run({});
    }
    r.expected = expected.parameters().values();
    r.once = found.parameters().values();
    found.run({});
    r.twice = found.parameters().values();
  } catch (const Error& error) {
    r.error = error.what();
  }
}

void check(std::vector<Run> runs, CompileOptions options) {
  options.threads = 1;
  test::on_all_cpus(runs.size(), [&](std::size_t i) { run(runs[i], options); });
  for (const Run& r : runs) {
    INFO(r.what);
    CHECK(r.error.empty());
    for (const auto& [name, value] : r.expected) {
      INFO(name);
      CHECK(test::error_of(r.once.at(name), value) <= r.tolerance);
      CHECK(r.twice.at(name).same_bits(r.once.at(name)));
    }
  }
}

}  // namespace

TEST_CASE("matmuls of all schedules", "[products]") {
  const auto options = test::gpu_options();
  if (!options) return;
  using bench::Product;
  std::vector<Run> runs;
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
        runs.push_back({fmt::format("{} x {} x {} {} {}", m, n, k, lathe::name(dtype), static_cast<int>(product)),
                        bench::product_case(shape),
                        dtype == f32   ? 1e-5
                        : dtype == f16 ? 1e-3
                                       : 8e-3});
      }
  check(std::move(runs), *options);
}

TEST_CASE("attentions of all schedules", "[attentions]") {
  const auto options = test::gpu_options();
  if (!options) return;
  std::vector<Run> runs;
  const auto add = [&](std::int64_t heads, DType dtype, std::int64_t d, std::int64_t length, bool causal) {
    const bench::AttentionShape shape{.batch = 2,
                                      .heads = heads,
                                      .length = length,
                                      .d = d,
                                      .causal = causal,
                                      .dtype = dtype,
                                      .groups = d == 128 ? 2 : 1,
                                      .window = causal && length == 1000 ? 300 : 0,
                                      .stores_gradient = true};
    runs.push_back({fmt::format("{} {}", shape.name(), lathe::name(dtype)), bench::attention_case(shape, true),
                    dtype == f32   ? 1e-5
                    : dtype == f16 ? 4e-3
                                   : 3e-2});
  };
  for (const DType dtype : {bf16, f16, f32})
    for (const std::int64_t d : {16, 64, 80, 128})
      for (const std::int64_t length : {1, 100, 512, 1000})
        for (const bool causal : {false, true}) add(4, dtype, d, length, causal);
  // With as many blocks as multiprocessors, one kernel computes all gradients.
  for (const DType dtype : {bf16, f16})
    for (const std::int64_t d : {64, 128})
      for (const std::int64_t length : {640, 1000, 1024})
        for (const bool causal : {false, true}) add(32, dtype, d, length, causal);
  check(std::move(runs), *options);
}
