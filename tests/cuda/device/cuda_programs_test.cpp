#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "frontend/initial_values.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/training.h"
#include "ir/kernel/intrinsics/gpu/mma.h"
#include "runtime/executable_program.h"
#include "tests/cuda/device/mock_gpu.h"
#include "tests/support/graphs/sample_graphs.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

/// Whole programs as GPU executables: ops and training steps. gpu_ops_test.cpp runs the ops' other samples, dtypes
/// and sizes with the same schedules.
using namespace lathe;
using lathe::test::MockGpu;

TEST_CASE("the first sample of every op, with its gradients, on a GPU") {
  MockGpu gpu;
  std::set<std::string_view> seen;
  int ran = 0;
  for (const DType dtype : {f32, f64})
    ir::test::for_each_graph(dtype, {}, [&](const ir::Graph& graph, const ir::Sample& sample) {
      const std::string_view op = graph[graph.outputs[0].value].op->name.value;
      if (!seen.insert(op).second) return;
      const Tensors arguments =
          ir::test::sample_arguments(graph, sample, ir::test::Layout::contiguous, ir::test::unknown_sizes(sample));
      const test::Outcome expected = test::outcome([&] { return ir::interpret(graph, arguments); });
      const test::Outcome found = test::outcome([&] {
        Executable executable = compile(graph, gpu.options());
        return test::run_with_states(executable, arguments);
      });
      CHECK(found.label == expected.label);
      if (!found.label.empty()) return;
      ++ran;
      for (const auto& [name, value] : expected.results) {
        INFO(op << " " << name);
        CHECK(test::error_of(found.results.at(name), value) <= 1e-5);
      }
    });
  CHECK(ran > 60);
  CHECK(gpu.driver().alive() == 0);
}

namespace {

struct Trained {
  Tensors results;
  int on_tensor_cores = 0;  ///< number of kernels
};

/// Runs three steps of a small GPT, alternating between two sizes. Returns the last results and every state.
Trained train(DType precision, const CompileOptions& options) {
  const models::LossGraph forward = models::loss_graph(models::GptConfig{.vocab = Dim("vocab", 31),
                                                                         .context = Dim("context", 16),
                                                                         .d_model = Dim("d_model", 24),
                                                                         .h = Dim("h", 3),
                                                                         .layers = 1,
                                                                         .dropout = 0.1});
  // Adam would amplify gradients that are zero except for rounding, such as those of key biases.
  const ir::Graph step = training_step(forward.graph, "loss", SGD{.lr = 0.1, .momentum = 0.9},
                                       {.clip_norm = 1.0, .precision = precision});
  Executable executable = compile(step, options);
  executable.parameters().set(initial_values(step, forward.initializers, 7));
  Trained trained;
  for (const std::int64_t length : {9, 9, 13}) {
    HostTensor tokens(i64, {2, length + 1});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, i * 5 % 31);
    trained.results = executable.run({{"tokens", tokens}});
  }
  for (const auto& [name, value] : executable.parameters().values()) trained.results.insert_or_assign(name, value);
  for (const kernel::Kernel& kernel : program_of(executable).kernels)
    trained.on_tensor_cores += std::any_of(kernel.values.begin(), kernel.values.end(), [](const auto& in) {
      return kernel::record_of(in) == &kernel::mma_record;
    });
  return trained;
}

void check_training(DType precision, MockGpu::By by, double tolerance) {
  MockGpu gpu(by);
  CompileOptions options = gpu.options();
  options.lower.attention = AttentionFusion::required;
  const Trained found = train(precision, options);
  if (!gpu.works()) return;
  CHECK((found.on_tensor_cores > 10) == (precision != f32));
  for (const auto& [name, value] : train(precision, {.threads = 2}).results) {
    INFO(name);
    CHECK(test::error_of(found.results.at(name), value) <= tolerance);
  }
}

}  // namespace

TEST_CASE("training steps with fused attention, run from the CUDA text, match a CPU") {
  check_training(f32, MockGpu::By::cuda_text, 1e-5);
}

TEST_CASE("mixed precision training steps on a GPU, with tensor cores") {
  check_training(bf16, MockGpu::By::interpreter, 1.6e-2);
  check_training(f16, MockGpu::By::interpreter, 2e-3);
}
