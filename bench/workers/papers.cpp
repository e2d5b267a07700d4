// Runs the models of examples/papers for bench/run_papers.py: reads commands line by line, answers with lines of
// JSON.
//   bench_papers [THREADS]
//   open NAME BATCH LENGTH WIDTH HEADS LAYERS VOCABULARY     compiles the loss and all gradients
//   run N                                                    runs them N times: {"seconds": [...]}
#include "examples/papers/papers.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "bench/serve_commands.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "runtime/compile.h"

namespace {

using namespace lathe;

/// Numbers in -0.1 .. 0.1; whole ones below `limit`.
HostTensor numbers(const ir::TensorType& type, std::int64_t limit) {
  HostTensor tensor(type.dtype, type.shape.evaluate({}));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const std::int64_t number = i * 7919 % 1009;
    if (type.dtype == i64)
      tensor.set_int(i, number % limit);
    else
      tensor.set(i, (static_cast<double>(number) / 1009 - 0.5) * 0.2);
  }
  return tensor;
}

class Server {
 public:
  explicit Server(int threads) : threads_(threads) {}

  void run() { executable_->run(inputs_); }

  std::string answer(const std::string& verb, std::istringstream& words) {
    if (verb == "open") return open(words);
    return "{}";
  }

 private:
  std::string open(std::istringstream& words) {
    std::string name;
    papers::Size size;
    words >> name >> size.batch >> size.length >> size.width >> size.heads >> size.layers >> size.vocabulary;
    const auto papers = papers::all_papers();
    const auto paper = std::ranges::find(papers, name, &papers::Paper::name);
    if (paper == papers.end()) throw UserError("there is no paper " + name, "bench_paper", "see examples/papers/");
    Graph g{name};
    const Tensor loss = paper->loss(g, size);
    g.output("loss", loss);
    // Gradients are states, so that they stay in the memory of the run, as PyTorch's do.
    for (const auto& [parameter, gradient] : parameter_gradients(loss))
      g.update(g.state("grad." + parameter, gradient.dtype(), gradient.shape()), gradient);
    const ir::Graph graph = g.finish();
    executable_.reset();
    executable_.emplace(compile(graph, {.threads = threads_}));
    inputs_.clear();
    for (const ir::ValueId id : graph.arguments()) {
      const ir::Node& node = graph[id];
      const HostTensor value = numbers(node.type, size.vocabulary);
      if (node.op->name.value == "input")
        inputs_.set(node.name, value);
      else
        executable_->parameters().set(node.name, value);
    }
    return "{}";
  }

  int threads_;
  Tensors inputs_;
  std::optional<Executable> executable_;
};

}  // namespace

int main(int argc, char** argv) { return lathe::bench::serve_commands<Server>(argc, argv); }
