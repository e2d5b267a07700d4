// Measures the compile time of training steps by phase: medians over rounds, in milliseconds.
//   bench_compile_time [--rounds N] [--text FOLDER] [gpt2 gpt48 llama32 encoder_decoder]
// "cold" compiles with an empty cache, "warm" with a full one. --text writes the result of each compilation as text
// (canonical kernels, launches, buffers), to check that a change does not affect it.
#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "bench/program_text.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/training.h"
#include "ir/tensor/verifier.h"

#include "passes/compile/compilation.h"
#include "passes/fusion/fusion.h"
#include "passes/lowering/verify/verify_program.h"
#include "runtime/backend/backend.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "runtime/host/seconds.h"

namespace {

using namespace lathe;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Milliseconds by phase and round. Phases are printed in the order in which they were first timed.
class Phases {
 public:
  void add(const std::string& phase, double seconds) {
    if (!times_.contains(phase)) order_.push_back(phase);
    times_[phase].push_back(1e3 * seconds);
  }
  template <class F>
  auto time(const std::string& phase, F&& work) {
    const auto start = Clock::now();
    auto result = work();
    add(phase, seconds_since(start));
    return result;
  }
  void print() const {
    for (const std::string& phase : order_) {
      std::vector<double> sorted = times_.at(phase);
      std::sort(sorted.begin(), sorted.end());
      fmt::print("  {:<44} {:9.2f}  (first {:.2f}, least {:.2f})\n", phase, sorted[sorted.size() / 2],
                 times_.at(phase).front(), sorted.front());
    }
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> times_;
};

ir::Graph forward(const std::string& model) {
  using namespace models;
  if (model == "gpt2") return loss_graph(gpt2_config()).graph;
  if (model == "gpt48") return loss_graph(gpt2_config(48, 1600, 25)).graph;
  if (model == "llama32")
    return loss_graph(LlamaConfig{.vocab = Dim("vocab", 32000),
                                  .d_model = Dim("d_model", 4096),
                                  .d_ff = Dim("d_ff", 11008),
                                  .h = Dim("h", 32),
                                  .kv_heads = Dim("kv_heads", 8),
                                  .head_dim = Dim("head_dim", 128),
                                  .layers = 32})
        .graph;
  if (model == "encoder_decoder")
    return loss_graph(EncoderDecoderConfig{
                          .src_vocab = Dim("src_vocab", 37000), .tgt_vocab = Dim("tgt_vocab", 37000), .dropout = 0.1})
        .graph;
  throw UserError("there is no model " + model, "bench_model", "gpt2, gpt48, llama32, encoder_decoder");
}

struct TemporaryFolder {
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "compile_time.XXXXXX").string();
    if (!::mkdtemp(name.data())) throw UserError("no temporary folder can be made", "bench_folder", "set TMPDIR");
    path = name;
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path path;
};

void add_compile(Phases& phases, const std::string& kind, const ir::Graph& step, ObjectStore* cache) {
  const Executable exe =
      phases.time(kind + ": compile", [&] { return compile(step, {.threads = 1, .cache = cache}); });
  const CompileSummary& c = exe.summary();
  phases.add(kind + ":   passes", c.pass_seconds);
  for (const PassRun& run : c.passes) phases.add(fmt::format("{}:     {}", kind, run.name), run.seconds);
  phases.add(kind + ":   lowering", c.lower_seconds);
  phases.add(kind + ":   code", c.codegen_seconds);
}

/// The phases of lowering that can run separately.
void add_lowering(Phases& phases, const ir::Graph& step) {
  Compilation now = begin_compilation(step, machine_of(Target::host()));
  run_through(now, Stage::Part::target);
  phases.time("verify once", [&] { return ir::find_defect(now.graph); });
  phases.time("lowering: plan_fusion", [&] { return plan_fusion(now.graph); });
  const Program program = phases.time("lowering: all", [&] {
    Compilation lowered = now;
    run_until(lowered, "collectives");
    return std::move(lowered.program);
  });
  phases.time("lowering: verify_program", [&] {
    verify_program(program);
    return 0;
  });
}

void measure(const std::string& model, int rounds, const fs::path& text) {
  Phases phases;
  const TemporaryFolder folder;
  for (int round = 0; round < rounds; ++round) {
    const ir::Graph graph = phases.time("build forward", [&] { return forward(model); });
    const ir::Graph step = phases.time(
        "training_step", [&] { return training_step(graph, "loss", AdamW{.lr = 1e-3}, {.clip_norm = 1.0}); });
    DiskCache cache(folder.path / std::to_string(round));
    add_compile(phases, "cold", step, &cache);
    add_compile(phases, "warm", step, &cache);
    add_lowering(phases, step);
    if (round > 0) continue;
    const Executable exe = compile(step, {.threads = 1, .cache = &cache});
    const CompileSummary& c = exe.summary();
    fmt::print("{}: {} ops, {} nodes, {} regions, {} launches of {} distinct kernels, {} of them from the cache\n",
               model, c.ops, c.nodes, program_of(exe).regions, c.launches, c.kernels, c.from_cache);
    if (!text.empty()) bench::write_text(text / (model + ".txt"), program_of(exe));
  }
  phases.print();
}

}  // namespace

int main(int argc, char** argv) try {
  int rounds = 5;
  fs::path text;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--text" && i + 1 < argc) {
      text = argv[++i];
    } else {
      wanted.push_back(argument);
    }
  }
  if (wanted.empty()) wanted = {"gpt2", "gpt48", "llama32", "encoder_decoder"};
  for (const std::string& model : wanted) measure(model, rounds, text);
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
