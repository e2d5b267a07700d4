#pragma once

/// The DSL of models in one header; <lathe/lathe.h> adds what compiles and runs them.
#include "frontend/check_custom_op.h"
#include "frontend/custom_op.h"
#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/initialize.h"
#include "frontend/losses.h"
#include "frontend/nn/attention.h"
#include "frontend/nn/experts.h"
#include "frontend/nn/feed_forward.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/positions.h"
#include "frontend/ops.h"
#include "frontend/step.h"
#include "frontend/tensor.h"
