#include "passes/gpu/attention/row_reciprocals.h"

#include <catch2/catch.hpp>

#include <string>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/intrinsics/fast_math.h"
#include "ir/tensor/text/parser.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

using namespace lathe;

namespace {

bool divides(const kernel::Instruction& in) {
  const bool rounded = in.op == kernel::Opcode::scalar && in.scalar_op == ScalarOp::div && in.type.scalar == f32;
  return rounded || kernel::record_of(in) == &kernel::fast_div_record;
}

/// Counts the divisions of f32 values by non-constants in the text of the kernels that sum over rows.
int divisions(const ir::Graph& graph, bool warpgroups) {
  const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  const Program program = (warpgroups ? lower_gpu_sm_90a : lower_gpu)(passed, {});
  int found = 0, kernels = 0;
  for (const kernel::Kernel& kernel : program.kernels) {
    if (kernel.name.find("_attention_columns_") == std::string::npos &&
        kernel.name.find("_attention_gradients_") == std::string::npos)
      continue;
    ++kernels;
    for (const kernel::Instruction& in : kernel.values)
      if (divides(in) && kernel.values[static_cast<std::size_t>(in.args[1])].op != kernel::Opcode::constant) ++found;
  }
  CHECK(kernels == 1);
  return found;
}

/// An attention with the gradients of a sum that needs its result, so that the backward pass is a separate kernel.
ir::Graph attention() {
  Graph g{"a"};
  const Dim n{"n"}, S{"S"}, d{"d", 16};
  const Tensor q = g.input("q", bf16, {n, S, d}), k = g.input("k", bf16, {n, S, d}),
               v = g.input("v", bf16, {n, S, d});
  const Tensor y = matmul(matmul(q, k.transpose(-2, -1)).softmax(-1), v);
  const auto gradients = grad((y * y).sum(), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

}  // namespace

TEST_CASE("row_reciprocals: a backward pass inverts the sums of a softmax once per row, not per element") {
  for (const bool warpgroups : {false, true}) CHECK(divisions(attention(), warpgroups) == 0);
}

TEST_CASE("row_reciprocals: sums that may be near zero divide every weight") {
  // No maximum is subtracted, so the sum may be near zero, where its reciprocal is infinite.
  const ir::Graph graph = ir::parse_graph(
      R"(graph @a(input %q: bf16[n, 32, 16], input %k: bf16[n, 32, 16], input %v: bf16[n, 32, 16], input %dy: bf16[n, 32, 16]) {
  %s = contract %q, %k {spec="nac,nbc->nab"}
  %1 = cast %s {dtype=f32}
  %2 = exp %1
  %3 = sum %2 {dims=[2], keepdim=true}
  %4 = div %2, %3
  %5 = cast %4 {dtype=bf16}
  %6 = contract %5, %v {spec="nab,nbc->nac"}
  %7 = contract %5, %dy {spec="nab,nac->nbc"}
  output "y" %6
  output "dv" %7
})",
      "a");
  CHECK(divisions(graph, true) > 0);
}
