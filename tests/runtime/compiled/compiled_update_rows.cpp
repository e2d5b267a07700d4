#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/programs/lower.h"

/// update_rows writes rows of a state in place, and rows of other values to a copy.
using namespace lathe;
using lathe::test::check;

namespace {

/// A cache that a matmul reads, with rows written at given positions.
std::string cache(std::string_view dtype, std::string_view shape, std::string_view rows, std::string_view positions,
                  int dim) {
  return fmt::format(R"(graph @cache(state %cache: {0}{1}, input %rows: {0}{2}, input %at: i64{3}) {{
  %1 = update_rows %cache, %at, %rows {{dim={4}}}
  %2 = mul %1, %1
  update %cache <- %1
  output "squares" %2
}})",
                     dtype, shape, rows, positions, dim);
}

/// Returns the kernels that copy or update rows, in order.
std::vector<std::string> kernels_of(const std::string& text) {
  const Program program =
      lower_cpu(ir::run_pipeline(lathe::test::parse(text), ir::default_pipeline()).graph, unnamed_cpu());
  std::vector<std::string> names;
  for (const Launch& launch : program.launches) {
    const std::string& name = program.kernels[static_cast<std::size_t>(launch.kernel)].name;
    for (const char* kind : {"copy_rows", "update_rows", "copy"})
      if (name.ends_with(std::string("_") + kind)) names.emplace_back(kind);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("update_rows: a state is updated in place, for any dim, dtype and lists of positions") {
  for (const char* dtype : {"f64", "f32", "bf16", "i64", "bool"}) {
    CAPTURE(dtype);
    const double tolerance = std::string_view(dtype) == "bf16" ? 1e-2 : 1e-6;
    std::vector<std::string> texts = {
        cache(dtype, "[3, 7, 5]", "[3, 2, 5]", "[2]", 1), cache(dtype, "[7, 37]", "[3, 37]", "[3]", 0),
        cache(dtype, "[4, 6]", "[4, 2]", "[2]", 1), cache(dtype, "[2, 3, 6, 4]", "[2, 3, 2, 4]", "[2, 2]", 2),
        cache(dtype, "[2, 6, 300]", "[2, 1, 300]", "[2, 1]", 1)};
    for (std::string& text : texts) {
      if (std::string_view(dtype) == "bool") text.replace(text.find("mul %1, %1"), 10, "logical_not %1");
      CAPTURE(text);
      CHECK(kernels_of(text) == Names{"update_rows"});
      for (const unsigned seed : {1, 2, 3, 4}) check(text, {.tolerance = tolerance, .seed = seed, .top = 5});
    }
  }
}

TEST_CASE("update_rows: unknown sizes, including zero") {
  const std::string text = cache("f32", "[b, h, n, 5]", "[b, h, t, 5]", "[b, t]", 2);
  check(text, {.sizes = {{{"b", 2}, {"h", 3}, {"n", 9}, {"t", 2}},
                         {{"b", 1}, {"h", 1}, {"n", 7}, {"t", 11}},
                         {{"b", 2}, {"h", 3}, {"n", 9}, {"t", 0}},
                         {{"b", 0}, {"h", 3}, {"n", 9}, {"t", 2}},
                         {{"b", 2}, {"h", 0}, {"n", 0}, {"t", 2}}},
               .tolerance = 1e-6,
               .top = 6});
}

TEST_CASE("update_rows: a value that is read later keeps its old value") {
  const auto with = [](const std::string& body) {
    return "graph @g(state %cache: f32[7, 5], input %x: f32[7, 5], input %rows: f32[2, 5], input %at: i64[2]) {\n" +
           body + "\n}";
  };
  // The old state next to the new one: it is read before the new rows are written, or else copied.
  const std::string before = with(
      "  %1 = update_rows %cache, %at, %rows {dim=0}\n  %2 = exp %cache\n  update %cache <- %1\n  output "
      "\"y\" %2");
  CHECK(kernels_of(before) == Names{"update_rows"});
  // The old state is multiplied by the new one.
  const std::string both = with(
      "  %1 = update_rows %cache, %at, %rows {dim=0}\n  %2 = mul %cache, %1\n  update %cache <- %1\n  output "
      "\"y\" %2");
  CHECK(kernels_of(both) == Names{"copy_rows", "update_rows", "copy"});
  // Rows that are computed from the old state.
  const std::string own = with(
      "  %1 = slice %cache {dim=0, start=2, stop=4, step=1}\n  %2 = add %1, %rows\n"
      "  %3 = update_rows %cache, %at, %2 {dim=0}\n  update %cache <- %3");
  CHECK(kernels_of(own) == Names{"copy_rows", "update_rows", "copy"});
  // Values other than states: an input is copied, a computed value is not.
  const std::string input = with("  %1 = update_rows %x, %at, %rows {dim=0}\n  output \"y\" %1");
  CHECK(kernels_of(input) == Names{"copy_rows", "update_rows"});
  const std::string view = with(
      "  %1 = transpose %x {dim0=0, dim1=1}\n  %2 = transpose %rows {dim0=0, dim1=1}\n"
      "  %3 = update_rows %1, %at, %2 {dim=1}\n  output \"y\" %3");
  const std::string twice = with(
      "  %1 = exp %x\n  %2 = update_rows %1, %at, %rows {dim=0}\n  %3 = update_rows %2, %at, %rows {dim=0}\n"
      "  %4 = exp %3\n  output \"y\" %4");
  CHECK(kernels_of(twice) == Names{"update_rows", "update_rows"});
  for (const std::string& text : {before, both, own, input, view, twice}) {
    CAPTURE(text);
    for (const unsigned seed : {1, 2, 3}) check(text, {.tolerance = 1e-6, .seed = seed, .top = 6});
  }
}

TEST_CASE("update_rows: only the rows are read and written") {
  const Program program = lower_cpu(
      ir::run_pipeline(lathe::test::parse("graph @g(state %cache: f32[12, 1024, 64], input %rows: f32[12, 1, 64], "
                                          "input %at: i64[1]) {\n  %1 = update_rows %cache, %at, %rows {dim=1}\n"
                                          "  update %cache <- %1\n}"),
                       ir::default_pipeline())
          .graph,
      unnamed_cpu());
  REQUIRE(program.launches.size() == 1);
  CHECK(program.launches[0].bytes.evaluate({}) < 3 * 12 * 64 * 4);
}
