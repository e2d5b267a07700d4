// Prints the planned memory of training steps: arena, largest live set, arguments and states, and the values that are
// live at the peak. Does not generate machine code.
//   bench_memory [maximum number of lines about the peak [budgets]]
// With `budgets`, prints each step of rematerialization, down to the smallest size.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <limits>

#include "frontend/dsl.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/training.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "runtime/host/seconds.h"

namespace {

using namespace lathe;

void report(const std::string& title, const Program& program, const DimBindings& dims, int most) {
  const MemoryPlan plan = plan_memory(program, dims);
  int copies = 0;
  for (const Launch& launch : program.launches) copies += launch.info.role == KernelRole::copy ? 1 : 0;
  constexpr double mega = 1e-6;
  fmt::print("{:<34} {:>8.1f} {:>8.1f} {:>6.3f} {:>9.1f} {:>9.1f} MB  {} states copied back\n", title,
             static_cast<double>(plan.arena_bytes) * mega, static_cast<double>(plan.lower_bound) * mega,
             static_cast<double>(plan.arena_bytes) / static_cast<double>(std::max<std::int64_t>(plan.lower_bound, 1)),
             static_cast<double>(plan.argument_bytes) * mega, static_cast<double>(plan.total_bytes()) * mega, copies);
  if (most > 0) fmt::print("{}", describe(plan, program, most));
}

void report(const std::string& title, const ir::Graph& step, const DimBindings& dims, int most,
            const RowChunks& chunks = {}) {
  report(title, lower(ir::run_pipeline(step, ir::default_pipeline(chunks)).graph, cpu_machine(unnamed_cpu())), dims,
         most);
}

/// Reports the step without a budget, and within the smallest one.
void report_least(const std::string& title, const ir::Graph& step, const DimBindings& dims, int most) {
  const ir::Graph graph = ir::run_pipeline(step, ir::default_pipeline()).graph;
  const Machine machine = cpu_machine(unnamed_cpu());
  Program program = lower(graph, machine);
  report(title, program, dims, most);
  try {
    for (;;)
      program = lower(graph, machine, {.memory = MemoryBudget{plan_memory(program, dims).total_bytes() - 1, dims}});
  } catch (const UserError&) {
    report("  within the smallest budget", program, dims, most);
  }
}

void budgets(const std::string& title, const ir::Graph& step, const DimBindings& dims, int most) {
  const ir::Graph graph = ir::run_pipeline(step, ir::default_pipeline()).graph;
  std::string peak;
  const auto took = [&](std::int64_t budget) {
    const Program program = lower(graph, cpu_machine(unnamed_cpu()), {.memory = MemoryBudget{budget, dims}});
    const MemoryPlan plan = plan_memory(program, dims);
    peak = most > 0 ? describe(plan, program, most) : "";
    return plan.total_bytes();
  };
  fmt::print("{}:\n", title);
  try {
    for (std::int64_t budget = std::numeric_limits<std::int64_t>::max();;) {
      const auto start = std::chrono::steady_clock::now();
      const std::int64_t bytes = took(budget);
      const double seconds = seconds_since(start);
      fmt::print("  budget {:>9} takes {:>9}  found in {:.1f} s\n",
                 budget > bytes * 2 ? "none" : format_bytes(budget), format_bytes(bytes), seconds);
      budget = bytes - 1;
    }
  } catch (const UserError& error) {
    fmt::print("  {}\n{}", error.what(), peak);
  }
}

template <class Config>
ir::Graph step(const Config& config) {
  return training_step(models::loss_graph(config).graph, "loss", AdamW{.lr = 3e-4});
}

/// A training step of tanh(h w + x) over `length` iterations.
ir::Graph recurrent_step(std::int64_t length, std::int64_t checkpoint_every) {
  const Dim batch{"B"}, d{"d", 256};
  Graph g{"recurrent"};
  const Tensor x = g.input("x", f32, {Dim(length), batch, d}), w = g.parameter("w", f32, {d, d});
  const auto step = [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(matmul(h, w) + x_t);
    return std::pair(next, next);
  };
  const Tensor last = scan(g.zeros({batch, d}, f32), x, step, {.checkpoint_every = checkpoint_every}).first;
  return training_step(g, (last * last).mean(), AdamW{.lr = 1e-3});
}

/// A training step of an LSTM.
ir::Graph lstm_step() {
  const Dim batch{"B"};
  Graph g{"lstm"};
  const nn::Module root("Module", f32);
  const nn::Lstm layer(root, "lstm", 256, 256);
  const Tensor y = layer(g.input("x", f32, {batch, 1024, 256}));
  return training_step(g, (y * y).mean(), AdamW{.lr = 1e-3});
}

}  // namespace

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 0;
  fmt::print("{:<34} {:>8} {:>8} {:>6} {:>9} {:>9}\n", "training step", "arena", "live", "ratio", "arguments", "all");
  const ir::Graph gpt2 = step(models::gpt2_config());
  report("GPT-2 124M, B=4 T=64", gpt2, {{"B", 4}, {"T", 64}}, most);
  report("GPT-2 124M, B=1 T=1024", gpt2, {{"B", 1}, {"T", 1024}}, most);
  for (const std::int64_t batch : {4, 8}) {
    const DimBindings dims = {{"B", batch}, {"T", 1024}};
    const ir::Graph known = ir::with_sizes(gpt2, dims);
    const std::string title = fmt::format("GPT-2 124M, B={} T=1024", batch);
    report(title, known, dims, most, {.on = false});
    for (const std::int64_t rows : {512, 1024, 2048})
      report(fmt::format("  logits in {} rows", rows), known, dims, most, {.least_rows = rows});
  }
  const ir::Graph llama = step(models::LlamaConfig{.vocab = Dim("vocab", 32000),
                                                   .d_model = Dim("d_model", 1024),
                                                   .d_ff = Dim("d_ff", 2816),
                                                   .h = Dim("h", 16),
                                                   .kv_heads = Dim("kv_heads", 4),
                                                   .head_dim = Dim("head_dim", 64),
                                                   .layers = 1});
  report("Llama block d=1024, B=1 T=512", llama, {{"B", 1}, {"T", 512}}, most);
  const ir::Graph encoder_decoder =
      step(models::EncoderDecoderConfig{.src_vocab = Dim("src_vocab", 32000), .tgt_vocab = Dim("tgt_vocab", 32000)});
  report("encoder-decoder base, B=4 S=T=64", encoder_decoder, {{"B", 4}, {"S", 64}, {"T", 64}}, most);
  report_least("4096 iterations, B=32 d=256", recurrent_step(4096, 0), {{"B", 32}}, most);
  for (const std::int64_t every : {16, 64, 256})
    report(fmt::format("  a checkpoint every {}", every), recurrent_step(4096, every), {{"B", 32}}, most);
  report_least("LSTM, B=32 T=1024 d=256", lstm_step(), {{"B", 32}}, most);
  models::GptConfig stacked = models::gpt2_config();
  stacked.stacked = true;
  report_least("GPT-2 124M, stacked, B=4 T=64", step(stacked), {{"B", 4}, {"T", 64}}, most);
  report_least("GPT-2 124M, stacked, B=1 T=1024", step(stacked), {{"B", 1}, {"T", 1024}}, most);
  if (argc <= 2) return 0;
  budgets("GPT-2 124M, B=4 T=64", gpt2, {{"B", 4}, {"T", 64}}, most);
  budgets("GPT-2 124M, B=1 T=1024", gpt2, {{"B", 1}, {"T", 1024}}, most);
}
