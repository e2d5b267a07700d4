#include <catch2/catch.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "passes/program/kept_launches.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "runtime/parameters/lend.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"

/// Packed copies of parameters that executables keep between runs.
using namespace lathe;
using test::parse;

namespace {

std::string product(std::string_view dtype, std::string_view rows, int columns, int k, bool is_linear = true) {
  return fmt::format(R"(graph @g(input %x: {0}[{1}, {2}], parameter %w: {0}[{3}, {4}], parameter %b: {0}[{5}]) {{
  %1 = {6} %x, %w
  %2 = add %1, %b
  output "y" %2
}})",
                     dtype, rows, k, is_linear ? columns : k, is_linear ? k : columns, columns,
                     is_linear ? "linear" : "matmul");
}

/// Each run doubles the weights.
constexpr std::string_view trains = R"(graph @trains(input %x: f32[n, 64], parameter %w: f32[96, 64]) {
  %1 = linear %x, %w
  %2 = add %w, %w
  output "y" %1
  update %w <- %2
})";

Executable compiled(const std::string& text, const Parameters& weights, CompileOptions options = {}) {
  static test::KernelStore store;
  options.parameters = weights;
  options.cache = &store;
  options.threads = 2;
  return compile(parse(text), options);
}

Executable without_copies(const std::string& text, const Parameters& weights, CompileOptions options = {}) {
  options.lower.packed_bytes = 0;
  return compiled(text, weights, options);
}

int copies(const Executable& executable) { return kept_launches(program_of(executable)); }

/// Returns numbers in [-1, 1] that depend on the seed.
HostTensor numbers(DType dtype, std::vector<std::int64_t> shape, unsigned seed) {
  HostTensor tensor(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, std::sin(static_cast<double>(i * seed + seed)));
  return tensor;
}

HostTensor rows_of(DType dtype, std::int64_t rows, std::int64_t k, unsigned seed = 1) {
  return numbers(dtype, {rows, k}, seed);
}

Parameters weights_of(DType dtype, std::int64_t columns, std::int64_t k, bool is_linear = true) {
  return Parameters({{"w", is_linear ? rows_of(dtype, columns, k, 2) : rows_of(dtype, k, columns, 2)},
                     {"b", numbers(dtype, {columns}, 3)}});
}

HostTensor run(Executable& executable, const HostTensor& x) { return executable.run({{"x", x}}).at("y"); }

void check_equal(const Tensors& a, const Tensors& b) { CHECK(a.at("y").same_bits(b.at("y"))); }

}  // namespace

TEST_CASE("kept weights: results have the bits of runs that pack weights themselves") {
  const auto [columns, k] =
      GENERATE(std::pair(96, 64), std::pair(200, 520), std::pair(393, 70), std::pair(1024, 1100));
  const bool is_linear = GENERATE(true, false);
  const std::string target = GENERATE("host", "host,-amx-bf16", "x86-64-v3", "x86-64-v2");
  const DType dtype = GENERATE(f32, f64, bf16);
  CAPTURE(columns, k, is_linear, target, name(dtype));
  const std::string text = product(name(dtype), "n", columns, k, is_linear);
  const Parameters weights = weights_of(dtype, columns, k, is_linear);
  const CompileOptions options{.target = Target::named(target)};
  Executable keeps = compiled(text, weights, options), packs = without_copies(text, weights, options);
  CHECK(copies(packs) == 0);
  if (dtype != bf16) CHECK(copies(keeps) > 0);
  for (const std::int64_t rows : {1, 5, 16, 17, 63, 64, 97, 130}) {
    CAPTURE(rows);
    const HostTensor x = rows_of(dtype, rows, k);
    CHECK(run(keeps, x).same_bits(run(packs, x)));
  }
}

TEST_CASE("kept weights: known rows, too") {
  for (const int rows : {1, 4, 6, 20, 40, 100, 300}) {
    CAPTURE(rows);
    const std::string text = product("f32", std::to_string(rows), 256, 384);
    const Parameters weights = weights_of(f32, 256, 384);
    Executable keeps = compiled(text, weights), packs = without_copies(text, weights);
    const HostTensor x = rows_of(f32, rows, 384);
    CHECK(run(keeps, x).same_bits(run(packs, x)));
    CHECK((copies(keeps) > 0) == (rows >= 40));  // fewer are dot products, which read weights in place
  }
}

TEST_CASE("kept weights are packed once, and again after a change") {
  const std::string text = product("f32", "n", 96, 64);
  Parameters weights = weights_of(f32, 96, 64);
  Executable keeps = compiled(text, weights);
  const HostTensor x = rows_of(f32, 20, 64);
  const auto packs = [&] {
    std::vector<LaunchTime> times;
    const Tensors results = keeps.run_traced({{"x", x}}, times);
    Executable fresh = without_copies(text, weights);
    check_equal(results, fresh.run({{"x", x}}));
    return std::ranges::count_if(times, [&](const LaunchTime& time) { return time.launch < copies(keeps); });
  };
  CHECK(packs() == 1);
  CHECK(packs() == 0);
  SECTION("set") { weights.set("w", rows_of(f32, 96, 64, 7)); }
  SECTION("to equal values") { weights.set("w", rows_of(f32, 96, 64, 2)); }
  SECTION("another store") {
    weights = weights_of(f32, 96, 64);
    weights.set("w", rows_of(f32, 96, 64, 8));
    keeps.use(weights);
  }
  SECTION("a training step in place") {
    Executable step = compiled(std::string(trains), weights);
    CHECK(copies(step) == 0);  // it updates its weights
    step.run({{"x", x}});
  }
  SECTION("a training step on a store that shares the memory") {
    const Parameters other = weights.borrowed();
    Executable step = compiled(std::string(trains), other);
    step.run({{"x", x}});
    CHECK(weights.get("w").same_bits(other.get("w")));
  }
  SECTION("a training step on memory that was lent to another store") {
    Parameters other;
    other.set("w", lend(weights.get("w")));
    Executable step = compiled(std::string(trains), other);
    step.run({{"x", x}});
  }
  SECTION("a training step on a value that another store shares") {
    Parameters other;
    other.set("w", weights.share("w"));
    Executable step = compiled(std::string(trains), other);
    step.run({{"x", x}});
  }
  CHECK(packs() == 1);
  CHECK(packs() == 0);
}

TEST_CASE("kept weights that two stores share are packed once by each, and after a run of either one") {
  const std::string text = product("f32", "n", 96, 64);
  const Parameters first = weights_of(f32, 96, 64);
  Parameters second = weights_of(f32, 96, 64);
  second.set("w", first.share("w"));
  Executable a = compiled(text, first), b = compiled(text, second);
  const HostTensor x = rows_of(f32, 20, 64);
  const auto packs = [&](Executable& executable) {
    std::vector<LaunchTime> times;
    executable.run_traced({{"x", x}}, times);
    return std::ranges::count_if(times, [&](const LaunchTime& time) { return time.launch < copies(executable); });
  };
  CHECK((packs(a) == 1 && packs(b) == 1 && packs(a) == 0 && packs(b) == 0));
  for (const Parameters& written : {first, second}) {
    Executable step = compiled(std::string(trains), written);
    step.run({{"x", x}});
    CHECK((packs(a) == 1 && packs(b) == 1 && packs(a) == 0 && packs(b) == 0));
    Executable fresh = without_copies(text, first);
    CHECK((run(a, x).same_bits(run(fresh, x)) && run(b, x).same_bits(run(fresh, x))));
  }
}

TEST_CASE("kept weights in memory of the caller are packed in each run") {
  const std::string text = product("f32", "n", 96, 64);
  HostTensor own = rows_of(f32, 96, 64, 2);
  Parameters weights = weights_of(f32, 96, 64);
  SECTION("lent") { weights.set("w", lend(own)); }
  SECTION("shared") { weights.set("w", own.share()); }
  SECTION("of a tensor that another one shares") {
    HostTensor given = rows_of(f32, 96, 64, 2);
    own = given.share();
    weights.set("w", std::move(given));
  }
  Executable keeps = compiled(text, weights);
  const HostTensor x = rows_of(f32, 20, 64);
  for (int i = 0; i < 3; ++i) {
    own.set(i * 100, 5 + i);
    Executable fresh = without_copies(text, weights);
    CHECK(run(keeps, x).same_bits(run(fresh, x)));
  }
}

TEST_CASE("kept weights of a mapped file that two stores opened are packed after a run writes one") {
  const test::ScratchFolder scratch;
  const auto file = scratch / "w.safetensors";
  weights_of(f32, 96, 64).save(file);
  const Parameters first = Parameters::load(file), second = Parameters::load(file);
  const std::string text = product("f32", "n", 96, 64);
  const HostTensor x = rows_of(f32, 20, 64);
  Executable a = compiled(text, first), b = compiled(text, second), step = compiled(std::string(trains), first);
  const HostTensor before = run(a, x);
  CHECK(before.same_bits(run(b, x)));
  step.run({{"x", x}});
  CHECK(!before.same_bits(run(a, x)));
  CHECK(before.same_bits(run(b, x)));
  Executable fresh = without_copies(text, first);
  CHECK(run(a, x).same_bits(run(fresh, x)));
}

TEST_CASE("kept weights: the first parameters that fit are kept, and none with a memory budget") {
  const std::string text = R"(graph @g(input %x: f32[n, 64], parameter %v: f32[64, 64], parameter %w: f32[96, 64]) {
  %1 = linear %x, %v
  %2 = linear %1, %w
  output "y" %2
})";
  const Parameters weights({{"v", rows_of(f32, 64, 64, 4)}, {"w", rows_of(f32, 96, 64, 2)}});
  CompileOptions options{.target = Target::named("x86-64-v3")};
  const auto kept = [&](std::int64_t bytes) {
    options.lower.packed_bytes = bytes;
    return copies(compiled(text, weights, options));
  };
  CHECK(kept(1 << 20) == 2);
  CHECK(kept(64 * 160 * 4) == 2);
  CHECK(kept(64 * 160 * 4 - 1) == 1);
  CHECK(kept(64 * 64 * 4 - 1) == 0);
  options.lower.memory = MemoryBudget{.bytes = 1 << 20, .dims = {{"n", 8}}};
  CHECK(kept(1 << 20) == 0);
  options.lower.memory.reset();
  CHECK_THROWS_WITH(kept(-1), Catch::Contains("packed parameters") && Catch::Contains("[compile_options]"));
}

TEST_CASE("kept weights: concurrent executables on one store have copies of their own") {
  const std::string text = product("f32", "n", 200, 130);
  const Parameters weights = weights_of(f32, 200, 130);
  Executable one = compiled(text, weights), other = compiled(text, weights);
  const HostTensor x = rows_of(f32, 100, 130), few = rows_of(f32, 3, 130);
  CHECK(run(one, x).same_bits(run(other, x)));
  CHECK(run(one, few).same_bits(run(other, few)));
  CHECK(run(one, x).same_bits(run(other, x)));
}

TEST_CASE("kept weights: layers that share a parameter share its copy") {
  const std::string text = R"(graph @g(input %x: f32[n, 64], parameter %w: f32[64, 64]) {
  %1 = linear %x, %w
  %2 = tanh %1
  %3 = linear %2, %w
  output "y" %3
})";
  const Parameters weights({{"w", rows_of(f32, 64, 64, 2)}});
  const CompileOptions options{.target = Target::named("x86-64-v3")};
  Executable keeps = compiled(text, weights, options), packs = without_copies(text, weights, options);
  CHECK(copies(keeps) == 1);
  const HostTensor x = rows_of(f32, 70, 64);
  CHECK(run(keeps, x).same_bits(run(packs, x)));
}
