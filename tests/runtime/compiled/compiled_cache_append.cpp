#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/programs/lower.h"

/// where(iota == row, new, state), stored to that state, writes only the row.
using namespace lathe;
using lathe::test::check;

namespace {

/// A cache of keys that appends a token's row.
std::string cache(std::string_view dtype, std::string_view shape, std::string_view row_shape, int dim,
                  std::string_view position_shape = "[1]") {
  return fmt::format(R"(graph @cache(state %cache: {0}{1}, input %row: {0}{2}, input %at: i64{4}) {{
  %1 = iota {{dim={3}, dtype=i64, shape={1}}}
  %2 = eq %1, %at
  %3 = where %2, %row, %cache
  update %cache <- %3
}})",
                     dtype, shape, row_shape, dim, position_shape);
}

/// Returns the number of row-update launches, and the bytes of the first one.
std::pair<int, std::int64_t> cache_appends(const std::string& text, const DimBindings& dims = {}) {
  const Program program =
      lower_cpu(ir::run_pipeline(lathe::test::parse(text), ir::default_pipeline()).graph, unnamed_cpu());
  int count = 0;
  std::int64_t bytes = 0;
  for (const Launch& launch : program.launches) {
    const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
    if (kernel.name.find("cache_append") == std::string::npos) continue;
    if (count++ == 0) bytes = launch.bytes.evaluate(dims);
  }
  return {count, bytes};
}

}  // namespace

TEST_CASE("row update: a row of a state is written in place, for any dim") {
  for (const char* dtype : {"f64", "f32", "bf16"}) {
    CAPTURE(dtype);
    const double tolerance = std::string_view(dtype) == "bf16" ? 1e-2 : 1e-6;
    for (const std::string& text :
         {cache(dtype, "[3, 7, 5]", "[3, 1, 5]", 1), cache(dtype, "[7, 37]", "[37]", 0),
          cache(dtype, "[4, 6]", "[4, 1]", 1), cache(dtype, "[2, 6, 3, 4]", "[2, 1, 3, 4]", 1, "[]")}) {
      CAPTURE(text);
      CHECK(cache_appends(text).first == 1);
      for (const unsigned seed : {1, 2, 3, 4}) check(text, {.tolerance = tolerance, .seed = seed, .top = 9});
    }
  }
}

TEST_CASE("row update: unknown sizes, including zero") {
  const std::string text = cache("f32", "[h, n, 5]", "[h, 1, 5]", 1);
  CHECK(cache_appends(text, {{"h", 2}, {"n", 9}}).first == 1);
  check(text, {.sizes = {{{"h", 2}, {"n", 9}}, {{"h", 1}, {"n", 1}}, {{"h", 0}, {"n", 3}}, {{"h", 3}, {"n", 0}}},
               .tolerance = 1e-6,
               .top = 9});
}

TEST_CASE("row update: only the row is read and written") {
  const auto [count, bytes] = cache_appends(cache("f32", "[12, 1024, 64]", "[12, 1, 64]", 1));
  CHECK(count == 1);
  CHECK(bytes < 4 * 12 * 64 * 4);
}

TEST_CASE("row update: not for other conditions, states or positions") {
  const auto with = [](const std::string& condition, const std::string& value) {
    return fmt::format(
        R"(graph @g(state %cache: f32[7, 5], state %other: f32[7, 5], input %row: f32[5], input %at: i64[1],
    input %all: i64[7, 1], input %real: f32[1]) {{
  %1 = iota {{dim=0, dtype=i64, shape=[7, 5]}}
  %9 = iota {{dim=0, dtype=f32, shape=[7, 5]}}
  %2 = {}
  %3 = where %2, {}
  update %cache <- %3
}})",
        condition, value);
  };
  CHECK(cache_appends(with("eq %1, %at", "%row, %cache")).first == 1);
  CHECK(cache_appends(with("eq %at, %1", "%row, %cache")).first == 1);
  for (const std::string& text :
       {with("le %1, %at", "%row, %cache"), with("eq %1, %at", "%cache, %row"), with("eq %1, %at", "%row, %other"),
        with("eq %1, %all", "%row, %cache"), with("eq %9, %real", "%row, %cache")}) {
    CAPTURE(text);
    CHECK(cache_appends(text).first == 0);
    check(text, {.tolerance = 1e-6, .top = 9});
  }
}

TEST_CASE("row update: a new row computed from the old one, two states at once") {
  const std::string text =
      R"(graph @g(state %k: f32[2, 6, 4], state %v: f32[2, 6, 4], input %row: f32[2, 1, 4], input %at: i64[1]) {
  %1 = iota {dim=1, dtype=i64, shape=[2, 6, 4]}
  %2 = eq %1, %at
  %3 = add %row, %k
  %4 = where %2, %3, %k
  %5 = mul %row, %4
  %6 = where %2, %5, %v
  update %k <- %4
  update %v <- %6
})";
  for (const unsigned seed : {1, 2, 3}) check(text, {.tolerance = 1e-6, .seed = seed, .top = 7});
}
