#include "tests/pretrained/cases/token_case.h"

namespace lathe::test {

Tolerance tolerance_of(DType dtype) {
  return dtype == f64 ? Tolerance{1e-10, 1e-10, 1e-9, 1e-9} : Tolerance{2e-5, 5e-6, 1e-4, 1e-4};
}

void store_in(pretrained::Pretrained& loaded, DType dtype) {
  for (const nn::Parameter& parameter : loaded.model->parameters()) {
    loaded.weights.set(parameter.name(), loaded.weights.get(parameter.name()).cast(dtype));
    parameter.store_as(dtype);
  }
}

pretrained::Pretrained load_in(const HfCase& which, DType dtype) {
  auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
  store_in(loaded, dtype);
  return loaded;
}

CaseGraph::CaseGraph(const HfCase& which, DType dtype, bool has_labels) : g(which.name) {
  const SafetensorsFile file = which.inputs();
  const Shape shape{Dim("B"), Dim("T")};
  const auto take = [&](const std::string& name) {
    values.emplace(name, file.tensor(name));
    return g.input(name, i64, shape);
  };
  inputs = {.ids = take("input_ids"), .dtype = dtype};
  if (file.contains("attention_mask")) inputs.mask = take("attention_mask");
  if (file.contains("position_ids")) inputs.positions = take("position_ids");
  if (has_labels) labels = take("labels");
}

}  // namespace lathe::test
