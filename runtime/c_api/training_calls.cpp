#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <map>

#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/sgd.h"
#include "frontend/train/training.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dce.h"
#include "runtime/c_api/caller_arrays.h"
#include "runtime/c_api/handles.h"

/// Functions of the C API that differentiate graphs.
namespace lathe::c_api {

namespace {

using Setter = std::function<void(double)>;
using Setters = std::map<std::string, Setter, std::less<>>;

/// Returns the number of an option that is whole. Throws UserError [option_value].
std::int64_t whole(std::string_view option, double value, double low, double high) {
  if (!(value >= low && value <= high) || value != std::floor(value))
    throw UserError(fmt::format("{} is {}", option, value), "option_value",
                    fmt::format("give a whole number from {} to {}", low, high));
  return static_cast<std::int64_t>(value);
}

Setter into(double& field) {
  return [&field](double value) { field = value; };
}

template <class Adams>
Setters setters_of(Adams& adam) {
  return {{"lr", [&adam](double value) { adam.lr = value; }},
          {"beta1", into(adam.beta1)},
          {"beta2", into(adam.beta2)},
          {"eps", into(adam.eps)},
          {"weight_decay", into(adam.weight_decay)}};
}

Setters setters_of(SGD& sgd) {
  return {{"lr", [&sgd](double value) { sgd.lr = value; }},
          {"momentum", into(sgd.momentum)},
          {"nesterov", [&sgd](double value) { sgd.nesterov = whole("nesterov", value, 0, 1) == 1; }},
          {"weight_decay", into(sgd.weight_decay)}};
}

using OptionValues = std::vector<std::pair<std::string, double>>;

/// Sets the options of an optimizer and of the step, and returns the optimizer.
template <class Kind>
Optimizer configured(const OptionValues& values, TrainingOptions& training) {
  Kind kind;
  Setters setters = setters_of(kind);
  setters.emplace("clip_norm", into(training.clip_norm));
  setters.emplace("accumulate", [&](double value) { training.accumulate = whole("accumulate", value, 1, 1e9); });
  for (const auto& [name, value] : values) {
    const auto setter = setters.find(name);
    if (setter == setters.end()) {
      std::vector<std::string_view> known;
      for (const auto& [option, set] : setters) known.push_back(option);
      throw UserError(fmt::format("the optimizer has no option {}", name), "option_unknown",
                      did_you_mean_or_list(name, known, "its options are"));
    }
    setter->second(value);
  }
  return kind;
}

Optimizer optimizer_of(std::string_view name, const OptionValues& values, TrainingOptions& training) {
  if (name == "sgd") return configured<SGD>(values, training);
  if (name == "adam") return configured<Adam>(values, training);
  if (name == "adamw") return configured<AdamW>(values, training);
  throw UserError(fmt::format("there is no optimizer {}", name), "option_value", "give sgd, adam or adamw");
}

}  // namespace
}  // namespace lathe::c_api

using namespace lathe;
using namespace lathe::c_api;

lathe_status lathe_graph_differentiate(const lathe_graph* graph, const char* const* outputs, size_t output_count,
                                       const char* const* wrt, size_t wrt_count, lathe_graph** gradient) {
  return created(gradient, "gradient", [&] {
    ir::GradientRequest request;
    for (std::string& output : texts_of(outputs, output_count, "outputs"))
      request.outputs.push_back({std::move(output), {}});
    request.wrt = texts_of(wrt, wrt_count, "wrt");
    return ir::dce(ir::differentiate(opened(graph).graph, request));
  });
}

lathe_status lathe_graph_training_step(const lathe_graph* graph, const char* loss, const char* optimizer,
                                       const char* const* names, const double* values, size_t count,
                                       lathe_graph** step) {
  return created(step, "step", [&] {
    const ir::Graph& forward = opened(graph).graph;
    OptionValues options;
    for (std::string& name : texts_of(names, count, "names"))
      options.emplace_back(std::move(name), (&needed(values, "values"))[options.size()]);
    TrainingOptions training;
    const Optimizer chosen = optimizer_of(text_of(optimizer, "optimizer"), options, training);
    return training_step(forward, text_of(loss, "loss"), chosen, training);
  });
}
