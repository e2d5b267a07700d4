#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "frontend/graph.h"
#include "frontend/pretrained/pretrained.h"
#include "ir/support/tensors/tensors.h"
#include "tests/pretrained/cases.h"

/// What models of all kinds are checked for: outputs, loss, gradients, training, saving.
namespace lathe::test {

/// A model in a graph of its own, fed with a case's inputs.
struct ModelGraph {
  explicit ModelGraph(const HfCase& which) : g(which.name), file(which.inputs()) {}
  /// An input of the graph, which the case's tensor is given to; cast to `dtype` where that is a float.
  Tensor take(const std::string& name, DType dtype, const Shape& shape);
  std::optional<Tensor> take_if(const std::string& name, DType dtype, const Shape& shape);

  Graph g;
  SafetensorsFile file;
  Tensors values;
  std::map<std::string, Tensor> outputs;  ///< by the names of what is expected
  Tensor loss;
};

/// A loaded model, and how its case is built of it.
struct LoadedCase {
  std::shared_ptr<pretrained::ModelFiles> files;
  nn::Module module;
  std::function<void(ModelGraph&, DType)> build;
  std::set<std::string> aside = {};  ///< parameters that the loss does not depend on
};
using LoadCase = std::function<LoadedCase(const std::filesystem::path& folder)>;

template <class Model, class Build>
LoadedCase loaded_case(pretrained::PretrainedModel<Model> model, const Build& build,
                       const std::set<std::string>& aside = {}) {
  auto shared = std::make_shared<pretrained::PretrainedModel<Model>>(std::move(model));
  const auto make = [shared, build](ModelGraph& c, DType dtype) { build(*shared->model, c, dtype); };
  return {shared, *shared->model, make, aside};
}

/// All that the case says, in f64 and f32, within its tolerances: every output, the loss, gradients, 20 steps of
/// training.
void check_model(const HfCase& which, const LoadCase& load);

/// What save() writes is read again: the same files and tensors, bit for bit, but for a weight that was changed.
void check_saved(const HfCase& which, const LoadCase& load);

}  // namespace lathe::test
