#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "frontend/dsl.h"

/// Loops with their gradients, and the same computations with one copy of the body per iteration.
namespace lathe::test {

/// Runs a body as scan() does: as a loop, or unrolled.
class LoopRunner {
 public:
  explicit LoopRunner(bool unroll) : unroll_(unroll) {}

  LoopResults operator()(std::vector<Tensor> carries, const std::vector<Tensor>& sequences, const ScanBody& body,
                         const LoopOptions& options = {}) const {
    if (!unroll_) return scan(carries, sequences, body, options);
    const std::int64_t trips = sequences[0].shape()[0].number();
    std::vector<std::vector<Tensor>> outputs;
    for (std::int64_t t = 0; t < trips; ++t) {
      const std::int64_t index = options.reverse ? trips - 1 - t : t;
      std::vector<Tensor> elements;
      for (const Tensor& sequence : sequences) elements.push_back(sequence.select(0, index));
      LoopStep step = body(carries, elements);
      carries = std::move(step.carries);
      outputs.resize(step.outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i)
        outputs[i].insert(options.reverse ? outputs[i].begin() : outputs[i].end(), step.outputs[i]);
    }
    LoopResults results{.carries = carries, .outputs = {}};
    for (const std::vector<Tensor>& each : outputs) results.outputs.push_back(stack(each, 0));
    return results;
  }

 private:
  bool unroll_;
};

struct LoopCase {
  std::string name;
  std::vector<std::vector<std::int64_t>> operands;
  std::function<std::vector<Tensor>(const LoopRunner&, const std::vector<Tensor>&)> build;

  /// A graph with the inputs "0", "1", .., the results "y0", "y1", .. and the gradients "0.grad", .. of the sum of
  /// y * cos(0.3 * position) over all results. With `second`, also "0.second", .., those of the sum of the squares of
  /// the gradients.
  ir::Graph graph(DType dtype, bool unroll, bool second = false) const {
    Graph g{"loops"};
    std::vector<Tensor> inputs;
    for (std::size_t k = 0; k < operands.size(); ++k)
      inputs.push_back(
          g.input(std::to_string(k), dtype, Shape(std::vector<Dim>(operands[k].begin(), operands[k].end()))));
    Tensor loss = g.constant(0, dtype);
    const std::vector<Tensor> results = build(LoopRunner(unroll), inputs);
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Dim count = results[r].shape().numel().unnamed();
      loss = loss + (results[r] * cos(g.arange(count, dtype) * 0.3).view(results[r].shape())).sum();
      g.output("y" + std::to_string(r), results[r]);
    }
    const std::vector<Tensor> gradients = grad(loss, inputs);
    for (std::size_t k = 0; k < gradients.size(); ++k) g.output(std::to_string(k) + ".grad", gradients[k]);
    if (second) {
      Tensor squares = g.constant(0, dtype);
      for (const Tensor& gradient : gradients) squares = squares + (gradient * gradient).sum();
      const std::vector<Tensor> again = grad(squares, inputs);
      for (std::size_t k = 0; k < again.size(); ++k) g.output(std::to_string(k) + ".second", again[k]);
    }
    return g.finish();
  }

  Tensors arguments(DType dtype) const {
    Tensors found;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      HostTensor tensor(dtype, operands[k]);
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        tensor.set(i, 0.7 * std::sin(1.0 + static_cast<double>(k) + 1.7 * static_cast<double>(i)));
      found.set(std::to_string(k), std::move(tensor));
    }
    return found;
  }
};

/// The last values of the carries, then the outputs.
inline std::vector<Tensor> all(const LoopResults& results) {
  std::vector<Tensor> tensors = results.carries;
  tensors.insert(tensors.end(), results.outputs.begin(), results.outputs.end());
  return tensors;
}

inline void add_recurrent_cases(std::vector<LoopCase>& cases) {
  using Run = const LoopRunner&;
  using Ts = const std::vector<Tensor>&;
  using Span = std::span<const Tensor>;
  cases.push_back({"recurrent network", {{2, 3}, {4, 2, 3}, {3, 3}, {3}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1]}, [&](Span h, Span x) {
                       const Tensor next = tanh(matmul(h[0], t[2]) + x[0] + t[3]);
                       return LoopStep{{next}, {next}};
                     }));
                   }});
  cases.push_back({"lstm", {{2, 3}, {2, 3}, {5, 2, 12}, {3, 12}}, [](Run run, Ts t) {
                     return all(run({t[0], t[1]}, {t[2]}, [&](Span s, Span x) {
                       const std::vector<Tensor> gates = (x[0] + matmul(s[0], t[3])).chunk(4, -1);
                       const Tensor c = sigmoid(gates[1]) * s[1] + sigmoid(gates[0]) * tanh(gates[2]);
                       const Tensor h = sigmoid(gates[3]) * tanh(c);
                       return LoopStep{{h, c}, {h}};
                     }));
                   }});
  cases.push_back({"in reverse, with a decay", {{3}, {6, 3}, {}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1]},
                                    [&](Span h, Span x) {
                                      const Tensor next = h[0] * sigmoid(t[2]) + x[0];
                                      return LoopStep{{next}, {next * x[0]}};
                                    },
                                    {.name = "decay", .reverse = true}));
                   }});
  cases.push_back({"carries that swap", {{4}, {4}, {3, 4}}, [](Run run, Ts t) {
                     return all(run({t[0], t[1]}, {t[2]},
                                    [&](Span s, Span x) { return LoopStep{{s[1], s[0] + s[1] * x[0]}, {s[0]}}; }));
                   }});
  cases.push_back({"nested", {{2, 3}, {3, 2, 2, 3}, {3, 3}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1]}, [&](Span outer, Span rows) {
                       const LoopResults inner = run({outer[0]}, {rows[0]}, [&](Span h, Span x) {
                         const Tensor next = tanh(matmul(h[0], t[2]) + x[0]);
                         return LoopStep{{next}, {next * outer[0]}};
                       });
                       return LoopStep{{inner.carries[0]}, {inner.outputs[0].sum(0)}};
                     }));
                   }});
}

inline void add_other_cases(std::vector<LoopCase>& cases) {
  using Run = const LoopRunner&;
  using Ts = const std::vector<Tensor>&;
  using Span = std::span<const Tensor>;
  cases.push_back({"two sequences and a captured product", {{2, 3}, {4, 2, 3}, {4, 3}, {3, 3}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1], t[2]}, [&](Span h, Span x) {
                       const Tensor weights = softmax(t[3], -1);
                       return LoopStep{{h[0] * 0.5 + matmul(x[0], weights)}, {h[0] * x[1], x[0] + x[1]}};
                     }));
                   }});
  cases.push_back({"attention to captured keys", {{2, 4}, {3, 2, 4}, {5, 4}, {5, 4}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1]}, [&](Span h, Span x) {
                       const Tensor scores = matmul(h[0] + x[0], t[2].transpose(0, 1));
                       return LoopStep{{matmul(softmax(scores, -1), t[3])}, {scores.sum(-1)}};
                     }));
                   }});
  cases.push_back({"delta rule", {{3, 3}, {4, 3}, {4, 3}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1], t[2]}, [&](Span s, Span x) {
                       const Tensor read = matmul(x[0].unsqueeze(0), s[0]);
                       const Tensor next = s[0] + x[0].unsqueeze(1) * (x[1].unsqueeze(0) - read);
                       return LoopStep{{next}, {matmul(x[0].unsqueeze(0), next).squeeze(0)}};
                     }));
                   }});
  cases.push_back(
      {"no use of the carry", {{2}, {3, 2}}, [](Run run, Ts t) {
         return std::vector<Tensor>{
             run({t[0]}, {t[1]}, [&](Span h, Span x) { return LoopStep{{h[0] + x[0]}, {x[0] * x[0]}}; }).outputs[0] +
             t[0] * t[0]};
       }});
  cases.push_back({"one iteration", {{2, 3}, {1, 2, 3}, {3, 3}}, [](Run run, Ts t) {
                     return all(run({t[0]}, {t[1]}, [&](Span h, Span x) {
                       const Tensor next = tanh(matmul(h[0], t[2]) * x[0]);
                       return LoopStep{{next}, {next}};
                     }));
                   }});
  for (const bool reverse : {false, true})
    cases.push_back(
        {reverse ? "checkpoints in reverse" : "checkpoints", {{2, 3}, {7, 2, 3}, {3, 3}}, [reverse](Run run, Ts t) {
           return all(run({t[0]}, {t[1]},
                          [&](Span h, Span x) {
                            const Tensor next = tanh(matmul(h[0], t[2]) + x[0]);
                            return LoopStep{{next}, {next * x[0]}};
                          },
                          {.reverse = reverse, .checkpoint_every = 3}));
         }});
}

inline std::vector<LoopCase> loop_cases() {
  std::vector<LoopCase> cases;
  add_recurrent_cases(cases);
  add_other_cases(cases);
  return cases;
}

}  // namespace lathe::test
