#include <catch2/catch.hpp>
#include <set>

#include "passes/pipeline/pipeline.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/executable_program.h"
#include "runtime/tune/tune.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/memory_store.h"

/// Tile selection by measurement, with a timer controlled by the test.
using namespace lathe;
using Catch::Matchers::Contains;

namespace {

const DimBindings sizes{{"n", 70}};
/// A target without tile units: it has several candidates for f32 matmuls, while a machine with tile units has none.
Target target() { return Target::named("x86-64-v3"); }

/// Three matmuls; the second and third are the same in two layers.
ir::Graph products() {
  return lathe::test::parse(
      R"(graph @g(input %x: f32[n, 300], parameter %w: f32[300, 700], parameter %u: f32[700, 700], parameter %v: f32[700, 700]) {
  %1 = contract %x, %w {spec="nk,km->nm"}
  %2 = relu %1
  %3 = contract %2, %u {spec="nk,km->nm"}
  %4 = relu %3
  %5 = contract %4, %v {spec="nk,km->nm"}
  %6 = relu %5
  output "y" %6
})");
}

/// Returns a timer that counts its calls and reports candidate number `fast` as the fastest.
LaunchTimer timer(int fast, int& calls) {
  return [fast, &calls](const Program& program, const std::vector<bool>& skipped) {
    ++calls;
    std::vector<double> seconds(program.launches.size());
    for (std::size_t l = 0; l < skipped.size(); ++l)
      if (!skipped[l] && !program.launches[l].flops.is(0))
        seconds[l] = program.launches[l].candidate == fast ? 0.9 : 1;
    return seconds;
  };
}

std::vector<int> chosen(const Executable& executable) {
  std::vector<int> numbers;
  for (const Launch& launch : program_of(executable).launches)
    if (launch.tuning && !launch.flops.is(0)) numbers.push_back(launch.candidate);  // excludes packing
  return numbers;
}

struct Tuning {
  ObjectStore* store = nullptr;
  int fast = 0;
  int threads = 2;
  DimBindings dims = sizes;
  double seconds = 60;
  int calls = 0;

  Executable compiled() {
    calls = 0;
    return compile(products(), {.target = target(),
                                .threads = threads,
                                .cache = store,
                                .tune = TuneOptions{.dims = dims, .seconds = seconds, .timer = timer(fast, calls)}});
  }
};

using Numbers = std::vector<int>;

/// Returns the candidate of each launch: every product has one launch for few rows, and one for more.
Numbers of_products(const Numbers& candidates) {
  Numbers numbers;
  for (const int candidate : candidates) numbers.insert(numbers.end(), {candidate, candidate});
  return numbers;
}

}  // namespace

TEST_CASE("tune: the fastest tile is chosen, stored, and reused without measuring") {
  test::MemoryStore store;
  Tuning tuning{.store = &store, .fast = 2};
  const Executable first = tuning.compiled();
  CHECK(chosen(first) == of_products({2, 2, 2}));
  CHECK(tuning.calls > 0);
  const TuneReport report = first.summary().tuned.value();
  REQUIRE(report.products.size() == 2);
  CHECK(report.products[0].time == Approx(0.9));
  CHECK(report.products[0].chosen != report.products[0].by_default);
  CHECK_THAT(to_string(report), Contains("tiles of 2 products: 0 from the cache, 2 measured") &&
                                    Contains("2 other than by default") && Contains("90% of the time") &&
                                    Contains("matrix product"));
  tuning.fast = 1;
  const Executable again = tuning.compiled();
  CHECK(chosen(again) == of_products({2, 2, 2}));
  CHECK(tuning.calls == 0);
  CHECK_THAT(to_string(again.summary().tuned.value()), Contains("2 from the cache, 0 measured"));
  const Executable plain = compile(products(), {.target = target(), .threads = 2, .cache = &store});
  CHECK(chosen(plain).empty());
  CHECK_FALSE(plain.summary().tuned);
}

TEST_CASE("tune: another size, number of threads or instruction set is measured separately") {
  test::MemoryStore store;
  Tuning tuning{.store = &store, .fast = 2};
  tuning.compiled();
  tuning.fast = 1;
  tuning.dims = {{"n", 71}};
  CHECK(chosen(tuning.compiled()) == of_products({1, 1, 1}));
  tuning.dims = sizes, tuning.threads = 3;
  CHECK(chosen(tuning.compiled()) == of_products({1, 1, 1}));
  tuning.threads = 2;
  CHECK(chosen(tuning.compiled()) == of_products({2, 2, 2}));
  const auto entries = [&] { return store.objects.size(); };
  const std::size_t before = entries();
  int calls = 0;
  const ir::Graph graph = ir::run_pipeline(products(), ir::default_pipeline()).graph;
  const auto for_target = [&](const codegen::TargetCpu& cpu) {
    return tune_products(
        graph, {}, {.dims = sizes, .timer = timer(1, calls)},
        {.name = "a machine",
         .lower = [&](const LowerOptions& options) { return lower_cpu(graph, cpu_info(cpu), options); },
         .code_key = [&](const kernel::Kernel& kernel) { return codegen::object_key(kernel, cpu); },
         .store = &store});
  };
  for_target(codegen::TargetCpu::named("x86-64-v2"));
  for_target(codegen::TargetCpu::named("x86-64-v3"));
  CHECK(entries() == before + 4);
  CHECK(calls > 0);
}

TEST_CASE("tune: the default is kept if nothing is clearly faster, and a store is optional") {
  test::MemoryStore store;
  Tuning tuning{.store = &store, .fast = 0};
  CHECK(chosen(tuning.compiled()) == of_products({0, 0, 0}));
  tuning.fast = 3;
  CHECK(chosen(tuning.compiled()) == of_products({0, 0, 0}));  // also stored
  CHECK(tuning.calls == 0);
  tuning.store = nullptr;
  CHECK(chosen(tuning.compiled()) == of_products({3, 3, 3}));
}

TEST_CASE("tune: when time is up, unmeasured matmuls use the default and are not stored") {
  test::MemoryStore store;
  Tuning tuning{.store = &store, .fast = 2, .seconds = 0};
  const Executable none = tuning.compiled();
  CHECK(chosen(none) == of_products({0, 0, 0}));
  CHECK(tuning.calls == 0);
  CHECK_THAT(to_string(none.summary().tuned.value()), Contains("2 left at their default as time was up"));
  tuning.seconds = 60;
  CHECK(chosen(tuning.compiled()) == of_products({2, 2, 2}));
  CHECK(tuning.calls > 0);
}

TEST_CASE("tune: damaged entries and entries without a valid tile are measured again") {
  const test::ScratchFolder scratch;
  Tuning tuning{.fast = 2};
  {
    DiskCache cache(scratch / "cache");
    tuning.store = &cache;
    CHECK(chosen(tuning.compiled()) == of_products({2, 2, 2}));
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(scratch / "cache"))
    if (file.is_regular_file()) std::filesystem::resize_file(file.path(), file.file_size() / 2);
  DiskCache cache(scratch / "cache");
  tuning.store = &cache, tuning.fast = 1;
  CHECK(chosen(tuning.compiled()) == of_products({1, 1, 1}));
  CHECK(tuning.calls > 0);
  test::MemoryStore store;
  tuning.store = &store;
  tuning.compiled();
  int renamed = 0;
  for (auto& [key, bytes] : store.objects)
    if (bytes.find(" tiles, tasks of ") != std::string::npos && bytes.size() < 200) bytes = "7x7 tiles", ++renamed;
  CHECK(renamed == 2);
  tuning.fast = 2;
  CHECK(chosen(tuning.compiled()) == of_products({2, 2, 2}));
  CHECK(tuning.calls > 0);
}

TEST_CASE("tune: every candidate gives the same bits") {
  const Tensors arguments = test::random_arguments(products(), sizes, 1);
  Tuning tuning;
  std::set<int> tried;
  const auto run = [&](int candidate) {
    tuning.fast = candidate;
    Executable executable = tuning.compiled();
    for (const char* name : {"w", "u", "v"}) executable.parameters().set(name, arguments.at(name));
    for (const int number : chosen(executable)) tried.insert(number);
    return executable.run({{"x", arguments.at("x")}}).at("y");
  };
  const HostTensor expected = run(0);
  for (int candidate = 1; candidate < 13; ++candidate) CHECK(run(candidate).same_bits(expected));
  CHECK(tried.size() > 6);
}

TEST_CASE("tune: measured on the host, and an error for dims without a size") {
  const Executable executable =
      compile(products(), {.target = target(), .threads = 1, .tune = TuneOptions{.dims = sizes, .seconds = 0.1}});
  CHECK(chosen(executable).size() == 6);
  CHECK_THROWS_WITH(compile(products(), {.threads = 1, .tune = TuneOptions{}}),
                    Contains("n has none") && Contains("[tune_dims]") && Contains("--dim NAME=SIZE"));
}
