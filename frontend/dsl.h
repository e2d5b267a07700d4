#pragma once

/// All headers of the model DSL. <lathe/lathe.h> adds compilation and execution.
#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/initial_values.h"
#include "frontend/nn/attention/attention.h"
#include "frontend/nn/attention/positions.h"
#include "frontend/nn/experts.h"
#include "frontend/nn/feed_forward.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/substitution.h"
#include "frontend/ops/check_custom_op.h"
#include "frontend/ops/custom_op.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "frontend/tensor.h"
#include "frontend/train/step.h"
