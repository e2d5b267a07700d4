#pragma once

/// Functions of tensors, losses, and ops that a program defines.
#include "frontend/ops/check_custom_op.h"
#include "frontend/ops/custom_op.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/factorizations.h"
#include "frontend/ops/loops/loops.h"
#include "frontend/ops/loops/recurrences.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/op_library.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/spatial/conv_ops.h"
#include "frontend/ops/spatial/pooling.h"
