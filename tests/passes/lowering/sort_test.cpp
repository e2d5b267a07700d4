#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

/// The kernels of argsort and top_k.
using namespace lathe;

namespace {

std::string kernel_of(std::string_view text) {
  const Program program = lower_gpu(ir::run_pipeline(ir::parse_graph(text, "t.lathe"), ir::default_pipeline()).graph);
  REQUIRE(program.kernels.size() == 1);
  return kernel::print(program.kernels[0]);
}

}  // namespace

TEST_CASE("argsort on a GPU counts the elements that rank before each one", "[lowering]") {
  CHECK(kernel_of(R"(graph @order(input %x: i64[rows, n]) {
  %1 = argsort %x {dim=1, descending=false}
  output "order" %1
})") == R"(kernel @k0_argsort_argsort_t_lathe_2(b0: read i64, b1: write i64; d0, d1) {
  note "%1 argsort t.lathe:2"
  %0 = mul d1, d0 : i64
  for i0 in 0..%0 step 256 @block.x {
    for i1 in 0..256 step 1 @thread.x {
      %1 = add i0, i1 : i64
      %2 = lt %1, %0 : bool
      if %2 {
        %3 = rem %1, d0 : i64
        %4 = div %1, d0 : i64
        %5 = mul %4, d0 : i64
        %6 = add %5, %3 : i64
        %7 = load b0[%6] : i64
        var v0: i64 = 0
        for i2 in 0..%3 step 1 @serial {
          %8 = mul %4, d0 : i64
          %9 = add %8, i2 : i64
          %10 = load b0[%9] : i64
          %11 = lt %7, %10 : bool
          %12 = logical_not %11 : bool
          %13 = select %12, 1, 0 : i64
          %14 = get v0 : i64
          %15 = add %14, %13 : i64
          set v0 = %15
        }
        %16 = add %3, 1 : i64
        for i3 in %16..d0 step 1 @serial {
          %17 = mul %4, d0 : i64
          %18 = add %17, i3 : i64
          %19 = load b0[%18] : i64
          %20 = lt %19, %7 : bool
          %21 = select %20, 1, 0 : i64
          %22 = get v0 : i64
          %23 = add %22, %21 : i64
          set v0 = %23
        }
        %24 = get v0 : i64
        %25 = mul %4, d0 : i64
        %26 = add %25, %24 : i64
        store b1[%26] = %3
      }
    }
  }
}
)");
}

TEST_CASE("top_k on a GPU stores only positions whose rank is below k", "[lowering]") {
  const std::string text =
      kernel_of("graph @best(input %x: i64[rows, n]) {\n  %1 = top_k %x {k=2, dim=1}\n  output \"best\" %1\n}");
  CAPTURE(text);
  CHECK(text.find(" = lt %24, 2 : bool") != std::string::npos);
}

TEST_CASE("argsort and top_k fuse no readers, and compute their operand", "[lowering]") {
  const std::string text = kernel_of(
      "graph @order(input %x: f32[n]) {\n  %1 = abs %x\n  %2 = argsort %1 {dim=0}\n  output \"order\" %2\n}");
  CAPTURE(text);
  CHECK(text.find("(b0: read f32, b1: write i64; d0)") != std::string::npos);
  CHECK(text.find(" = abs ") != std::string::npos);
}
