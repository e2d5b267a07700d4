#include <catch2/catch.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <regex>

#include "ir/kernel/printer.h"
#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// Matmuls with quantized weights, which read the quantized values and their scales directly.
using namespace lathe;
using lathe::test::check;

namespace {

/// x [rows, n] times the transpose of a quantized weight [m, n].
std::string product(const std::string& rows, int m, int n, int block, const std::string& dtype = "f32") {
  return fmt::format(R"(graph @g(input %x: {4}[{0}, {2}], parameter %q: i8[{1}, {2}], parameter %s: f32[{1}, {3}],
  input %b: {4}[{1}]) {{
  %1 = dequantize %q, %s
  %2 = cast %1 {{dtype={4}}}
  %3 = linear %x, %2, %b
  output "y" %3
}})",
                     rows, m, n, n / block, dtype);
}

/// Number of launches of the matmul, and the size of the largest temporary or scratch buffer.
struct Stored {
  std::size_t launches = 0;
  std::int64_t largest = 0;
};

Stored lowered(const std::string& text, const DimBindings& dims) {
  const ir::Graph graph = ir::run_pipeline(lathe::test::parse(text), ir::default_pipeline()).graph;
  const Program program = lower_cpu(graph, test::cpu_with(512));
  Stored found{.launches = program.launches.size(), .largest = 0};
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.kind == ProgramBuffer::Kind::temporary || buffer.kind == ProgramBuffer::Kind::scratch)
      found.largest = std::max(found.largest, buffer.elements.evaluate(dims));
  return found;
}

}  // namespace

TEST_CASE("products of quantized weights: few rows and many, every block size") {
  for (const char* rows : {"1", "2", "4", "40"})
    for (const int block : {192, 64, 32, 16, 12, 1}) check(product(rows, 35, 192, block), {.tolerance = 2e-6});
  for (const int block : {64, 192}) check(product("n", 35, 192, block), {.sizes = test::n_sizes, .tolerance = 2e-6});
  check(product("2", 35, 192, 64, "f64"));
  check(product("3", 35, 192, 64, "bf16"), {.tolerance = 2e-2});
  check(product("70", 35, 192, 64, "bf16"), {.tolerance = 2e-2});
}

TEST_CASE("products of quantized weights: from memory, and in several blocks of k") {
  for (const char* rows : {"1", "3"})
    for (const int block : {768, 64, 12}) check(product(rows, 519, 768, block), {.tolerance = 2e-6});
  for (const int block : {2176, 136, 64, 17}) check(product("2", 35, 2176, block), {.tolerance = 4e-6});
}

TEST_CASE("a matmul with one row multiplies by the block scale once") {
  const auto multiplications = [](int m, int n, int block) {
    const ir::Graph graph =
        ir::run_pipeline(lathe::test::parse(product("1", m, n, block)), ir::default_pipeline()).graph;
    const std::string text = kernel::print(lower_cpu(graph, test::cpu_with(512)).kernels.at(0));
    const std::regex vector("= mul [^\n]*f32x16");
    return std::distance(std::sregex_iterator(text.begin(), text.end(), vector), std::sregex_iterator());
  };
  for (const int m : {35, 519}) {
    CHECK(multiplications(m, 768, 64) == 0);
    CHECK(multiplications(m, 768, 8) > 0);  // two blocks in a vector
  }
}

TEST_CASE("matmuls of a quantized weight that is stored transposed") {
  check(R"(graph @g(input %x: f32[n, 128], parameter %q: i8[33, 128], parameter %s: f32[33, 2]) {
  %1 = dequantize %q, %s
  %2 = transpose %1 {dim0=0, dim1=1}
  %3 = matmul %x, %2
  output "y" %3
})",
        {.sizes = test::n_sizes, .tolerance = 2e-6});
}

TEST_CASE("gathered rows of a quantized table") {
  check(R"(graph @g(input %ids: i64[n, 2], parameter %q: i8[7, 64], parameter %s: f32[7, 2]) {
  %1 = gather %q, %ids
  %2 = gather %s, %ids
  %3 = dequantize %1, %2
  output "y" %3
})",
        {.sizes = test::n_sizes});
}

TEST_CASE("a matmul never stores the dequantized weight") {
  const Stored one = lowered(product("1", 512, 768, 64), {});
  CHECK(one.launches == 1);
  CHECK(one.largest <= 512);
  const Stored four = lowered(product("4", 512, 768, 64), {});
  CHECK(four.launches == 1);
  const Stored many = lowered(product("n", 512, 768, 64), {{"n", 100}});
  CHECK(many.launches <= 3);
}
