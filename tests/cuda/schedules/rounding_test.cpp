#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/intrinsics/fast_math.h"
#include "tests/cuda/attention/attention_cases.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"

/// Kernels with 16-bit results use approximate functions; others do not.
using namespace lathe;
using lathe::test::ProgramInterpreter;

namespace {

bool approximates(const kernel::Kernel& kernel) {
  return std::any_of(kernel.values.begin(), kernel.values.end(), [](const auto& in) {
    const auto* record = kernel::record_of(in);
    return record == &kernel::fast_exp_record || record == &kernel::fast_div_record;
  });
}

/// Counts an op on floats.
int count_of(ScalarOp op, const kernel::Kernel& kernel) {
  return static_cast<int>(std::count_if(kernel.values.begin(), kernel.values.end(), [&](const auto& in) {
    return in.op == kernel::Opcode::scalar && in.scalar_op == op && is_float(in.type.scalar);
  }));
}

using Lower = decltype(&lower_gpu);
constexpr Lower lowers[] = {lower_gpu, lower_gpu_sm_90a};

/// A gated layer, a softmax over its rows and the gradients of both; element-wise functions of an input only.
ir::Graph layer(DType dtype, DType outputs) {
  Graph g{"layer"};
  const Dim m{"m"};
  const Tensor x = g.input("x", dtype, {m, 64}), w = g.parameter("w", dtype, {128, 64});
  const Tensor y = silu(linear(x, w));
  g.output("y", y);
  g.output("rows", softmax(y, -1));
  g.output("points", (exp(x) / (x * x + 1.0)).to(outputs));
  const auto gradients = grad((y * g.input("weight", dtype, y.shape())).sum(), {x, w});
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

}  // namespace

TEST_CASE("fast functions: not used in f32 and f64 kernels") {
  for (const Lower lower : lowers)
    for (const DType dtype : {f32, f64})
      for (const ir::Graph& graph : {layer(dtype, dtype), test::causal_attention(dtype, 16, 16)}) {
        const ProgramInterpreter program(graph, lower);
        int exponentials = 0, quotients = 0;
        for (const kernel::Kernel& kernel : program.program().kernels) {
          INFO(kernel.name);
          CHECK_FALSE(approximates(kernel));
          exponentials += count_of(ScalarOp::exp, kernel), quotients += count_of(ScalarOp::div, kernel);
        }
        CHECK(exponentials > 0);
        CHECK(quotients > 0);
      }
}

TEST_CASE(
    "fast functions: used after 16-bit matmuls, in 16-bit attention, in point-wise kernels that store 16 bits only") {
  for (const Lower lower : lowers)
    for (const DType dtype : {bf16, f16})
      for (const DType outputs : {dtype, f32}) {
        const ProgramInterpreter program(layer(dtype, outputs), lower);
        int products = 0, points = 0;
        std::string names;
        for (const kernel::Kernel& kernel : program.program().kernels) {
          names += kernel.name + "\n";
          INFO(kernel.name);
          const bool fast = approximates(kernel);
          if (kernel.name.find("_rows_") != std::string::npos) CHECK_FALSE(fast);
          products += fast && kernel.name.find("_product_") != std::string::npos;
          points += fast && kernel.name.find("_points_") != std::string::npos;
        }
        INFO(names);
        CHECK(names.find("_rows_") != std::string::npos);
        CHECK(products > 0);
        CHECK((points > 0) == (outputs == dtype));
        const ProgramInterpreter attention(test::causal_attention(dtype, 16, 16), lower);
        int attentions = 0;
        for (const kernel::Kernel& kernel : attention.program().kernels) attentions += approximates(kernel);
        CHECK(attentions >= 2);  // forward and backward
      }
}
