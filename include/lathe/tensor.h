#pragma once

/// Graphs and their tensors: the model under construction, and values in host memory.
#include "frontend/graph.h"
#include "frontend/tensor.h"
#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensors.h"
