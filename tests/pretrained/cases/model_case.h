#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "frontend/graph.h"
#include "ir/support/tensors/tensors.h"
#include "models/pretrained/pretrained.h"
#include "tests/pretrained/cases/cases.h"

/// Checks for models of all kinds: outputs, loss, gradients, training, saving.
namespace lathe::test {

/// A model in its own graph, with a case's inputs.
struct ModelGraph {
  explicit ModelGraph(const HfCase& which) : g(which.name), file(which.inputs()) {}
  /// Declares an input and binds the case's tensor to it; a float is cast to `dtype`.
  Tensor take(const std::string& name, DType dtype, const Shape& shape);
  std::optional<Tensor> take_if(const std::string& name, DType dtype, const Shape& shape);

  Graph g;
  SafetensorsFile file;
  Tensors values;
  std::map<std::string, Tensor> outputs;  ///< by the names of the expected tensors
  Tensor loss;
};

/// A loaded model, and how to build its case.
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

/// Checks everything in the case, in f64 and f32, within its tolerances: every output, the loss, gradients, 20
/// training steps.
void check_model(const HfCase& which, const LoadCase& load);

/// Checks that save() round-trips: the same files and tensors, bit for bit, except for a weight that was changed.
void check_saved(const HfCase& which, const LoadCase& load);

}  // namespace lathe::test
