#include <catch2/catch.hpp>

#include <cmath>

#include "ir/kernel/phases.h"
#include "ir/kernel/verify/parameter_use.h"
#include "ir/support/error.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/kernels/phased_kernel.h"

/// Kernels whose phases run other kernels, with barriers of the whole grid between them.
using namespace lathe;
using namespace lathe::kernel;
using test::phased_kernel;
using test::phased_result;
using test::phased_text;

namespace {

/// Returns the text of the phased kernel with another text in place of one that it has.
std::string with(const std::string& text, const std::string& other) {
  std::string all = phased_text;
  const auto at = all.find(text);
  REQUIRE(at != std::string::npos);
  return all.replace(at, text.size(), other);
}

void fails(const std::string& text, const std::string& other, const std::string& label) {
  INFO(other << " for " << text);
  const Kernel kernel = parse_kernel(with(text, other), "phased");
  CHECK_THROWS_WITH(verify(kernel), Catch::Contains(label));
}

}  // namespace

TEST_CASE("phases: a kernel prints as it parses, and computes what its kernels compute one after the other") {
  const Kernel kernel = test::round_trip(phased_kernel());
  CHECK(print(kernel) == phased_text);
  CHECK(phases_of(kernel).size() == 4);
  for (const auto& [rows, cols] : {std::pair{3, 40}, {1, 1}, {5, 300}, {0, 7}}) {
    const auto found = phased_result(rows, cols, [&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
    const auto expected = phased_result(rows, cols, [&](auto all, auto dims) {
      const auto run = [&](int k, std::vector<BoundBuffer> buffers, std::vector<std::int64_t> own) {
        interpret(*kernel.phase_kernels[static_cast<std::size_t>(k)], buffers, own);
      };
      run(0, {all[0], all[2]}, {dims[2]});
      run(1, {all[2], all[3]}, {dims[0], dims[1]});
      run(0, {all[2], all[4]}, {dims[2]});
      run(2, {all[3], all[4], all[1], all[5]}, {dims[0], dims[1]});
    });
    CHECK(found == expected);
  }
}

TEST_CASE("phases: a failed check has the code of its kernel, after those of earlier phases") {
  const Kernel kernel = phased_kernel();
  std::int64_t code = 0;
  phased_result(1000, 1, [&](auto buffers, auto dims) { code = interpret(kernel, buffers, dims); });
  CHECK(code == 3);
  CHECK(parameter_use(kernel).largest_code == 3);
}

TEST_CASE("phases: a phase must not access what another one writes without a barrier between them") {
  fails("  grid_barrier\n  run_phase 1", "  run_phase 1", "[grid_race]");
  fails("  grid_prefetch w[0] count 40\n  grid_barrier\n", "", "[grid_race]");
  fails("run_phase 0(read y, write z; n)", "run_phase 0(read x, write y; n)", "[grid_race]");
  CHECK_NOTHROW(verify(phased_kernel()));
}

TEST_CASE("phases: awaited elements take the place of barriers") {
  const Kernel kernel = test::round_trip(test::awaiting_kernel());
  CHECK_NOTHROW(verify(kernel));
  CHECK(print(kernel) == test::awaiting_text());
  for (const auto& [rows, cols] : {std::pair{3, 40}, {5, 300}, {0, 7}}) {
    const auto run = [](const Kernel& each) {
      return [&each](auto buffers, auto dims) { interpret(each, buffers, dims); };
    };
    CHECK(phased_result(rows, cols, run(kernel)) == phased_result(rows, cols, run(phased_kernel())));
  }
  // A phase that reads before the only write finds NaN.
  const auto unwritten = [](const Kernel& each) {
    return phased_result(1, 1, [&](auto buffers, auto dims) { interpret(each, buffers, dims); })[0];
  };
  std::string early = test::awaiting_text();
  const std::string write = "  run_phase 0(read x, write awaited y; n)\n";
  early.erase(early.find(write), write.size());
  CHECK(std::isnan(unwritten(parse_kernel(early, "early"))));
}

TEST_CASE("phases: the verifier checks that awaited elements are cleared, written once, and written before") {
  const auto fails_awaiting = [](const std::string& text, const std::string& other, const char* label) {
    INFO(other << " for " << text);
    std::string all = test::awaiting_text();
    const auto at = all.find(text);
    REQUIRE(at != std::string::npos);
    CHECK_THROWS_WITH(verify(parse_kernel(all.replace(at, text.size(), other), "phased")), Catch::Contains(label));
  };
  fails_awaiting("  grid_clear y count n\n", "", "[phase_awaits]");
  fails_awaiting("  grid_barrier\n", "", "[phase_awaits]");
  fails_awaiting("grid_clear y count n", "grid_clear x count n", "[access]");
  fails_awaiting("  run_phase 0(read x, write awaited y; n)\n", "", "[phase_awaits]");
  fails_awaiting("run_phase 0(read x, write awaited y; n)", "run_phase 0(read x, write y; n)", "[phase_awaits]");
  fails_awaiting("run_phase 1(read awaited y", "run_phase 1(read y", "[grid_race]");
  fails_awaiting("run_phase 0(read awaited y, write awaited z; n)", "run_phase 0(read x, write awaited y; n)",
                 "[phase_awaits]");
  fails_awaiting("run_phase 0(read x, write awaited y; n)\n",
                 "run_phase 0(read x, write awaited y; n)\n  grid_clear y count n\n", "[grid_race]");
  fails_awaiting("  grid_barrier\n", "  grid_barrier\n  grid_clear z count n\n", "[grid_race]");
  // Rows may be prefetched from what phases write meanwhile, at a place for prefetches.
  fails_awaiting("most 4096", "most 0", "[grid_prefetch]");
  fails_awaiting("  grid_clear y count n\n",
                 "  grid_prefetch_rows z[0] count cols rows rows every cols most 4096\n  grid_clear y count n\n",
                 "[grid_prefetch]");
}

TEST_CASE("phases: the verifier checks arguments, contexts and prefetches") {
  fails("run_phase 0(read x, write y; n)", "run_phase 3(read x, write y; n)", "[phase_arguments]");
  fails("run_phase 0(read x, write y; n)", "run_phase 0(read x; n)", "[phase_arguments]");
  fails("run_phase 0(read x, write y; n)", "run_phase 0(read x, write y)", "[phase_arguments]");
  fails("run_phase 0(read x, write y; n)", "run_phase 0(read x, readwrite y; n)", "[phase_arguments]");
  fails("run_phase 0(read x, write y; n)", "run_phase 0(read y, write y; n)", "[phase_arguments]");
  fails("run_phase 0(read x, write y; n)", "run_phase 0(write x, write y; n)", "[access]");
  fails("  run_phase 0(read x, write y; n)\n", "  %0 = add n, 1 : i64\n  run_phase 0(read x, write y; %0)\n",
        "[phase_context]");
  fails("grid_barrier", "for i0 in 0..2 step 1 @serial {\n    grid_barrier\n  }", "[phase_context]");
  fails("i1 in 0..256 step 1 @thread.x", "i1 in 0..250 step 1 @thread.x", "[phase_context]");
  fails("grid_prefetch w[0] count 40", "grid_prefetch y[0] count 40", "[grid_prefetch]");
  fails("grid_prefetch w[0] count 40", "grid_prefetch w[0] count n", "[grid_prefetch]");
  fails("  run_phase 2(read sums, read z, read w, write out; rows, cols)\n",
        "  run_phase 2(read sums, read z, read w, write out; rows, cols)\n  grid_prefetch w[0] count 40\n",
        "[grid_prefetch]");
  CHECK_THROWS_WITH(verify(parse_kernel("kernel @k(x: read f32) {\n  grid_barrier\n}", "k")),
                    Catch::Contains("[phase_context]"));
  CHECK_THROWS_AS(
      parse_kernel(with("kernel @scale(x", "kernel @outer() {\n    kernel @inner() {\n    }\n  }\n  kernel @scale(x"),
                   "phased"),
      ParseError);
}
