#include <catch2/catch.hpp>

#include <algorithm>

#include "frontend/initial_values.h"
#include "frontend/train/training.h"
#include "passes/autodiff/autodiff.h"
#include "passes/chunks/chunk_rows.h"
#include "passes/compile/compilation.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/dtypes/mixed_precision.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/executable_program.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/kernel_store.h"

/// Compiled matmuls that process their rows in chunks.
using namespace lathe;
using lathe::test::parse;

namespace {

constexpr RowChunks off{.on = false};

RowChunks of_rows(std::int64_t rows) { return {.least_rows = rows, .least_saved = 0}; }

ir::Graph chunked_loss(const std::string& dtype) {
  const ir::Graph loss = parse("graph @g(input %x: " + dtype + "[5, 7, 6], parameter %w: " + dtype +
                               "[33, 6], parameter %b: " + dtype + R"([33], input %t: i64[5, 7]) {
  %1 = linear %x, %w, %b
  %2 = cross_entropy %1, %t {label_smoothing=0.1}
  output "loss" %2
})");
  const ir::Graph both = ir::differentiate(loss, {.outputs = {{"loss", ""}}, .wrt = {"x", "w", "b"}});
  ir::Graph chunked = ir::run_pipeline(both, ir::default_pipeline(of_rows(7))).graph;
  REQUIRE(chunked.size() > ir::run_pipeline(both, ir::default_pipeline(off)).graph.size());
  return chunked;
}

/// A GPT with tied embeddings whose logits take most of its memory.
struct Model {
  Model() {
    models::GptConfig config = lathe::test::small_gpt(f32, 1);
    config.vocab = Dim("vocab", 509);
    models::LossGraph loss = models::loss_graph(config);
    initializers = std::move(loss.initializers);
    step = ir::with_sizes(training_step(loss.graph, "loss", AdamW{.lr = 1e-3}, {.report_norm = false}),
                          {{"B", 6}, {"T", 16}});
  }
  ir::Graph step;
  std::vector<Initializer> initializers;
};

Executable compiled(const Model& model, const RowChunks& chunks, int threads = 2) {
  static lathe::test::KernelStore store;
  CompileOptions options{.threads = threads, .cache = &store};
  options.lower.chunks = chunks;
  return compile(model.step, options);
}

/// Runs two steps and returns the results and all states.
Tensors train(Executable& executable, const Model& model) {
  executable.parameters().set(initial_values(model.step, model.initializers, 7));
  HostTensor tokens(i64, {6, 17});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, i * 61 % 509);
  executable.run({{"tokens", tokens}});
  Tensors results = executable.run({{"tokens", tokens}});
  for (const auto& [name, value] : executable.parameters().values()) results.insert_or_assign(name, value);
  return results;
}

std::int64_t arena(const Executable& executable) { return memory_plan_of(executable, {}).arena_bytes; }

}  // namespace

TEST_CASE("row chunks: compiled losses and gradients match the interpreter") {
  lathe::test::check_compiled(chunked_loss("f64"), {.tolerance = 1e-12});
  lathe::test::check_compiled(chunked_loss("f32"), {.tolerance = 2e-6});
}

TEST_CASE(
    "row chunks: a training step uses less memory, keeps its values, and has the same bits for any number of "
    "threads") {
  const Model model;
  Executable whole = compiled(model, off), chunked = compiled(model, of_rows(16));
  // Six chunks: the logits of one chunk are live at a time, and the gradient of the table until the last one.
  const std::int64_t logits = 6 * 16 * 509 * 4, table = 509 * 48 * 4;
  CHECK(arena(whole) - arena(chunked) >= logits - logits / 6 - table);
  const Tensors expected = train(whole, model), found = train(chunked, model);
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(lathe::test::error_of(found.at(name), value) <= 1e-5);
  }
  for (const int threads : {1, 3, 7}) {
    Executable other = compiled(model, of_rows(16), threads);
    for (const auto& [name, value] : train(other, model)) {
      INFO(name << " on " << threads << " threads");
      CHECK(lathe::test::same_bits(found.at(name), value));
    }
  }
}

TEST_CASE("row chunks: chunks of one size share kernels, and sums over rows accumulate in place") {
  const Model model;
  const Executable whole = compiled(model, off), three = compiled(model, of_rows(32)),
                   six = compiled(model, of_rows(16));
  CHECK(three.summary().kernels >= whole.summary().kernels);
  CHECK(six.summary().kernels == three.summary().kernels);
  for (const Launch& launch : program_of(six).launches) CHECK(launch.info.role != KernelRole::copy);
  // At most one temporary has the table's size: the accumulator.
  const auto& buffers = program_of(six).buffers;
  CHECK(std::count_if(buffers.begin(), buffers.end(), [](const ProgramBuffer& buffer) {
          return buffer.kind == ProgramBuffer::Kind::temporary && buffer.dtype == f32 && buffer.elements.is(509 * 48);
        }) <= 1);
}
