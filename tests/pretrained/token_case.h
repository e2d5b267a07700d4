#pragma once

#include "frontend/graph.h"
#include "frontend/pretrained/pretrained.h"
#include "ir/support/tensors/tensors.h"
#include "tests/pretrained/cases.h"

/// Cases of language models: what they are fed, and how near results must be.
namespace lathe::test {

struct Tolerance {
  double forward, loss, grad, train;
};
Tolerance tolerance_of(DType dtype);

/// Every parameter of a model stored in the dtype that is computed in, as training wants them.
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
