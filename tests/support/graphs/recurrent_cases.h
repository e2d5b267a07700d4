#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "frontend/dsl.h"
#include "tests/support/graphs/loop_cases.h"

/// Recurrent layers and recurrences in chunks, with their gradients, as in tests/frontend/loops/make_cases.py.
namespace lathe::test {

/// Parameters of a layer by name, with their sizes.
using NamedShapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// A layer whose parameters are the last operands. `build` declares it below `root` and runs it on the first ones.
inline LoopCase layer_case(
    std::string name, std::vector<std::vector<std::int64_t>> inputs, const NamedShapes& parameters,
    std::function<std::vector<Tensor>(const nn::Module& root, const std::function<void()>& replace,
                                      std::span<const Tensor> inputs)>
        build) {
  LoopCase made{std::move(name), inputs, {}};
  std::vector<std::string> names;
  for (const auto& [parameter, shape] : parameters) {
    names.push_back("layer." + parameter);
    made.operands.push_back(shape);
  }
  made.build = [names, build, count = inputs.size()](const LoopRunner&, const std::vector<Tensor>& t) {
    const nn::Module root("Module", t[0].dtype());
    std::map<std::string, Tensor> tensors;
    for (std::size_t k = 0; k < names.size(); ++k) tensors.emplace(names[k], t[count + k]);
    std::optional<nn::Substitution> replaced;
    return build(root, [&] { replaced.emplace(root, tensors); }, std::span(t).first(count));
  };
  return made;
}

struct RecurrentShape {
  std::int64_t layers = 1, states = 0;  ///< states: layers times directions, 0 for none given
  bool bidirectional = false, bias = true;
};

/// The parameters of torch.nn.LSTM(3, 2) or GRU(3, 2) in their order.
inline NamedShapes recurrent_parameters(std::int64_t gates, const RecurrentShape& o) {
  NamedShapes found;
  for (std::int64_t layer = 0; layer < o.layers; ++layer)
    for (const char* suffix : {"", "_reverse"}) {
      if (*suffix && !o.bidirectional) continue;
      const auto of = [&](const char* kind) { return kind + ("_l" + std::to_string(layer)) + suffix; };
      const std::int64_t rows = 2 * gates, from = layer == 0 ? 3 : o.bidirectional ? 4 : 2;
      found.push_back({of("weight_ih"), {rows, from}});
      found.push_back({of("weight_hh"), {rows, 2}});
      if (o.bias) found.push_back({of("bias_ih"), {rows}});
      if (o.bias) found.push_back({of("bias_hh"), {rows}});
    }
  return found;
}

inline LoopCase recurrent_case(const std::string& name, bool lstm, const RecurrentShape& o = {}) {
  std::vector<std::vector<std::int64_t>> inputs{{2, 3, 3}};
  for (int s = 0; s < (o.states == 0 ? 0 : lstm ? 2 : 1); ++s) inputs.push_back({o.states, 2, 2});
  return layer_case(name, inputs, recurrent_parameters(lstm ? 4 : 3, o),
                    [=](const nn::Module& root, const std::function<void()>& replace, std::span<const Tensor> t) {
                      const nn::RecurrentOptions options{
                          .layers = o.layers, .bidirectional = o.bidirectional, .bias = o.bias};
                      const Tensor h = t.size() > 1 ? t[1] : Tensor(), c = t.size() > 2 ? t[2] : Tensor();
                      if (lstm) {
                        const nn::Lstm layer(root, "layer", 3, 2, options);
                        replace();
                        const nn::RecurrentResults r = layer.run(t[0], h, c);
                        return std::vector<Tensor>{r.output, r.h, r.c};
                      }
                      const nn::Gru layer(root, "layer", 3, 2, options);
                      replace();
                      const nn::RecurrentResults r = layer.run(t[0], h);
                      return std::vector<Tensor>{r.output, r.h};
                    });
}

/// The delta rule of q, k, v, decays and betas, and of a state if there is a sixth operand.
inline std::vector<Tensor> run_delta_rule(const std::vector<Tensor>& t, std::int64_t chunk) {
  const RecurrenceResults results = gated_delta_rule(t[0], t[1], t[2], -softplus(t[3]), sigmoid(t[4]),
                                                     {.chunk = chunk, .initial = t.size() > 5 ? t[5] : Tensor()});
  return {results.output, results.state};
}

/// state_space_dual() of x, dt, a, b, c and skip, and of a state if there is a seventh operand.
inline std::vector<Tensor> run_state_space(const std::vector<Tensor>& t, std::int64_t chunk) {
  const RecurrenceResults results =
      state_space_dual(t[0], softplus(t[1]), -exp(t[2]), t[3], t[4],
                       {.chunk = chunk, .initial = t.size() > 6 ? t[6] : Tensor(), .skip = t[5]});
  return {results.output, results.state};
}

inline LoopCase mamba2_case() {
  return layer_case(
      "mamba2", {{2, 6, 4}},
      {{"dt_bias", {4}},
       {"A_log", {4}},
       {"D", {4}},
       {"conv1d.weight", {20, 1, 3}},
       {"conv1d.bias", {20}},
       {"in_proj.weight", {32, 4}},
       {"in_proj.bias", {32}},
       {"norm.weight", {8}},
       {"out_proj.weight", {4, 8}},
       {"out_proj.bias", {4}}},
      [](const nn::Module& root, const std::function<void()>& replace, std::span<const Tensor> t) {
        const nn::Mamba2 layer(
            root, "layer", 4,
            {.heads = 4, .head_size = 2, .state_size = 3, .groups = 2, .conv = 3, .chunk = 4, .bias = true});
        replace();
        return std::vector<Tensor>{layer(t[0])};
      });
}

inline LoopCase gated_delta_net_case() {
  return layer_case("gated delta net", {{2, 6, 4}},
                    {{"dt_bias", {4}},
                     {"A_log", {4}},
                     {"conv1d.weight", {20, 1, 3}},
                     {"in_proj_qkvz.weight", {28, 4}},
                     {"in_proj_ba.weight", {8, 4}},
                     {"norm.weight", {2}},
                     {"out_proj.weight", {4, 8}}},
                    [](const nn::Module& root, const std::function<void()>& replace, std::span<const Tensor> t) {
                      const nn::GatedDeltaNet layer(
                          root, "layer", 4,
                          {.key_heads = 2, .value_heads = 4, .key_size = 3, .value_size = 2, .conv = 3, .chunk = 4});
                      replace();
                      return std::vector<Tensor>{layer(t[0])};
                    });
}

inline std::vector<LoopCase> recurrent_cases() {
  using Run = const LoopRunner&;
  using Ts = const std::vector<Tensor>&;
  std::vector<LoopCase> cases{
      recurrent_case("lstm", true),
      recurrent_case("lstm of given states", true, {.states = 1}),
      recurrent_case("lstm without biases", true, {.bias = false}),
      recurrent_case("lstm of two layers", true, {.layers = 2, .states = 2}),
      recurrent_case("bidirectional lstm", true, {.states = 2, .bidirectional = true}),
      recurrent_case("bidirectional lstm of two layers", true, {.layers = 2, .states = 4, .bidirectional = true}),
      recurrent_case("gru", false),
      recurrent_case("gru of given states", false, {.states = 1}),
      recurrent_case("gru without biases", false, {.bias = false}),
      recurrent_case("gru of two layers", false, {.layers = 2, .states = 2}),
      recurrent_case("bidirectional gru of two layers", false, {.layers = 2, .states = 4, .bidirectional = true}),
      mamba2_case(),
      gated_delta_net_case(),
  };
  const std::vector<std::vector<std::int64_t>> delta{{2, 7, 2, 3}, {2, 7, 2, 3}, {2, 7, 2, 2}, {2, 7, 2}, {2, 7, 2}};
  const std::vector<std::vector<std::int64_t>> space{{2, 7, 4, 2}, {2, 7, 4}, {4}, {2, 7, 2, 3}, {2, 7, 2, 3}, {4}};
  const auto with = [](std::vector<std::vector<std::int64_t>> shapes, std::vector<std::int64_t> state) {
    shapes.push_back(std::move(state));
    return shapes;
  };
  const auto delta_rule = [](Run, Ts t) { return run_delta_rule(t, 3); };
  const auto state_space = [](Run, Ts t) { return run_state_space(t, 3); };
  cases.push_back({"gated delta rule", delta, delta_rule});
  cases.push_back({"gated delta rule from a state", with(delta, {2, 2, 3, 2}), delta_rule});
  cases.push_back({"state space", space, state_space});
  cases.push_back({"state space from a state", with(space, {2, 4, 3, 2}), state_space});
  return cases;
}

}  // namespace lathe::test
