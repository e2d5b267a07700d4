// Runs recurrent layers and recurrences for bench/run_recurrent.py: reads commands line by line, answers with lines
// of JSON.
//   bench_recurrent [THREADS]
//   lstm BATCH LENGTH IN HIDDEN TRAIN     compiles that case: {"compile": seconds}; gru: the same
//   delta BATCH LENGTH HEADS SIZE TRAIN   the gated delta rule; space: state_space_dual with one group
//   run N                                 runs it N times: {"seconds": [...]}
// A training step of a layer is the mean of squares of its outputs, its gradients and a step of plain gradient
// descent; that of a recurrence has the gradients of all its operands.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <sstream>

#include "bench/serve_commands.h"
#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "runtime/compile.h"
#include "runtime/host/seconds.h"

namespace {

using namespace lathe;
using Clock = std::chrono::steady_clock;

/// A graph whose tensors are states, so that results stay in place, and their values.
struct Case {
  Graph g{"recurrent"};
  Tensors states = {};

  Tensor normal(const std::string& name, const std::vector<std::int64_t>& sizes) {
    states.set(name, initial_value(Init::normal({}), name, f32, sizes, 1));
    return g.state(name, f32, Shape(std::vector<Dim>(sizes.begin(), sizes.end())));
  }
  void keep(const std::string& name, const Tensor& value) {
    states.set(name, HostTensor(value.dtype(), value.shape().evaluate({})));
    g.update(g.state(name, value.dtype(), value.shape()), value);
  }
};

struct LayerShape {
  std::int64_t batch = 1, length = 1, in = 1, hidden = 1;
  bool train = false;
};

Case layer_case(bool lstm, const LayerShape& s) {
  Case made;
  const nn::Module root;
  const Tensor x = made.normal("x", {s.batch, s.length, s.in});
  const auto run = [&] {
    if (lstm) return nn::Lstm(root, "layer", s.in, s.hidden)(x);
    return nn::Gru(root, "layer", s.in, s.hidden)(x);
  };
  const Tensor y = run();
  for (const auto& [name, value] : root.initial_values(1)) made.states.set(name, value);
  if (!s.train) {
    made.keep("y", y);
    return made;
  }
  std::vector<Tensor> weights;
  for (const nn::Parameter& parameter : root.parameters()) weights.push_back(parameter.in(made.g));
  const Tensor loss = (y * y).mean();
  const std::vector<Tensor> gradients = grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) made.g.update(weights[i], weights[i] - gradients[i] * 1e-3);
  made.keep("loss", loss);
  return made;
}

struct RuleShape {
  std::int64_t batch = 1, length = 1, heads = 1, size = 1;
  bool train = false;
};

/// Results and, for training, the gradients of the operands from a gradient that depends on the result.
void keep_results(Case& made, const Tensor& y, const std::vector<Tensor>& operands, bool train) {
  made.keep("y", y);
  if (!train) return;
  const std::vector<Tensor> gradients = grad(y, operands, y * 0.5);
  for (std::size_t i = 0; i < gradients.size(); ++i) made.keep(fmt::format("gradient_{}", i), gradients[i]);
}

Case delta_case(const RuleShape& s) {
  Case made;
  const std::vector<std::int64_t> wide{s.batch, s.length, s.heads, s.size}, steps{s.batch, s.length, s.heads};
  const Tensor q = made.normal("q", wide), k = made.normal("k", wide), v = made.normal("v", wide);
  const Tensor gate = made.normal("gate", steps), beta = made.normal("beta", steps);
  const auto normalized = [](const Tensor& a) { return a * rsqrt((a * a).sum(-1, true) + 1e-6); };
  const Tensor y = gated_delta_rule(normalized(q), normalized(k), v, -softplus(gate), sigmoid(beta)).output;
  keep_results(made, y, {q, k, v, gate, beta}, s.train);
  return made;
}

Case space_case(const RuleShape& s) {
  Case made;
  const std::vector<std::int64_t> wide{s.batch, s.length, s.heads, s.size}, grouped{s.batch, s.length, 1, s.size};
  const Tensor x = made.normal("x", wide), b = made.normal("b", grouped), c = made.normal("c", grouped);
  const Tensor dt = made.normal("dt", {s.batch, s.length, s.heads}), a = made.normal("a", {s.heads});
  const Tensor y = state_space_dual(x, softplus(dt), -exp(a), b, c).output;
  keep_results(made, y, {x, dt, a, b, c}, s.train);
  return made;
}

class Server {
 public:
  explicit Server(int threads) : threads_(threads) {}

  void run() { executable_->run({}); }

  std::string answer(const std::string& verb, std::istringstream& words) {
    if (verb == "lstm" || verb == "gru") {
      LayerShape s;
      words >> s.batch >> s.length >> s.in >> s.hidden >> s.train;
      return open(layer_case(verb == "lstm", s));
    }
    if (verb == "delta" || verb == "space") {
      RuleShape s;
      words >> s.batch >> s.length >> s.heads >> s.size >> s.train;
      return open(verb == "delta" ? delta_case(s) : space_case(s));
    }
    return "{}";
  }

 private:
  std::string open(const Case& made) {
    executable_.reset();
    const ir::Graph graph = made.g.finish();
    const auto start = Clock::now();
    executable_.emplace(compile(graph, {.threads = threads_}));
    const double seconds = seconds_since(start);
    executable_->parameters().set(made.states);
    return fmt::format("{{\"compile\":{}}}", seconds);
  }

  int threads_;
  std::optional<Executable> executable_;
};

}  // namespace

int main(int argc, char** argv) { return lathe::bench::serve_commands<Server>(argc, argv); }
