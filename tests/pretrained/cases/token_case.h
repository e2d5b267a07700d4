#pragma once

#include "frontend/graph.h"
#include "ir/support/tensors/tensors.h"
#include "models/pretrained/pretrained.h"
#include "tests/pretrained/cases/cases.h"

/// Cases of language models: their inputs, and the tolerances of results.
namespace lathe::test {

struct Tolerance {
  double forward, loss, grad, train;
};
Tolerance tolerance_of(DType dtype);

/// Stores every parameter of a model in the compute dtype, as training requires.
void store_in(pretrained::Pretrained& loaded, DType dtype);
pretrained::Pretrained load_in(const HfCase& which, DType dtype);

/// The arguments of a case as inputs of a graph.
struct CaseGraph {
  Graph g;
  pretrained::TokenInputs inputs;
  Tensor labels;
  Tensors values;

  CaseGraph(const HfCase& which, DType dtype, bool has_labels);
};

}  // namespace lathe::test
