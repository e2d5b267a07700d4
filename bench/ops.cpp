// Runs single ops for bench/run_ops.py: reads commands line by line, answers with lines of JSON.
//   bench_ops [THREADS]
//   attention BATCH HEADS LENGTH D CAUSAL BACKWARD     compiles that case: {"flops": ...}
//   convolution DIMS BATCH IN OUT SIZE KERNEL STRIDE PADDING BACKWARD     {"flops": ...}
//   memory ROWS COLUMNS NAME                           one of bench_memory_bound's ops: {"bytes": ..., "floor": s}
//   run N        runs it N times: {"seconds": [...]}
//   peak         {"peak": ...}
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "bench/cases/memory_cases.h"
#include "bench/cases/op_cases.h"
#include "bench/serve_commands.h"
#include "runtime/compile.h"
#include "runtime/host/peak.h"

namespace {

using namespace lathe;
using namespace lathe::bench;

class Server {
 public:
  explicit Server(int threads) : threads_(threads), pool_(threads) {}

  void run() { executable_->run(inputs_); }

  std::string answer(const std::string& verb, std::istringstream& words) {
    if (verb == "attention") return open_attention(words);
    if (verb == "convolution") return open_convolution(words);
    if (verb == "memory") return open_memory(words);
    if (verb == "peak") return fmt::format("{{\"peak\":{}}}", measure_fma_peak(threads_, 0.05).best);
    return "{}";
  }

 private:
  void open(const ir::Graph& graph, const Tensors& states) {
    executable_.reset();
    executable_.emplace(compile(graph, {.threads = threads_}));
    executable_->parameters().set(states);
  }

  std::string open_attention(std::istringstream& words) {
    AttentionShape shape{.length = 128, .d = 64, .causal = true};
    bool backward = false;
    words >> shape.batch >> shape.heads >> shape.length >> shape.d >> shape.causal >> backward;
    const OpCase made = attention_case(shape, backward);
    inputs_.clear();
    open(made.graph, made.states);
    return fmt::format("{{\"flops\":{}}}", made.flops);
  }

  std::string open_convolution(std::istringstream& words) {
    ConvolutionShape s;
    bool backward = false;
    words >> s.spatial >> s.batch >> s.in >> s.out >> s.size >> s.kernel >> s.stride >> s.padding >> backward;
    const OpCase made = convolution_case(s, backward);
    inputs_.clear();
    open(made.graph, made.states);
    return fmt::format("{{\"flops\":{}}}", made.flops);
  }

  std::string open_memory(std::istringstream& words) {
    std::int64_t rows = 1, columns = 1;
    std::string name;
    words >> rows >> columns >> std::ws;
    std::getline(words, name);
    for (const MemoryOp& op : memory_ops()) {
      if (op.name != name) continue;
      MemoryCase made = op.make(rows, columns);
      double bytes = 0;
      for (const Sweep& sweep : made.sweeps) bytes += sweep.bytes();
      inputs_ = made.inputs;
      open(made.graph, made.states);
      return fmt::format("{{\"bytes\":{},\"floor\":{}}}", bytes, measure_floor(pool_, made.sweeps, 5));
    }
    throw UserError("there is no op " + name, "bench_op", "see memory_cases.cpp");
  }

  int threads_;
  ThreadPool pool_;
  Tensors inputs_;
  std::optional<Executable> executable_;
};

}  // namespace

int main(int argc, char** argv) { return lathe::bench::serve_commands<Server>(argc, argv); }
