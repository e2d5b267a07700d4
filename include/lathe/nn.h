#pragma once

/// Modules: layers with parameters.
#include "frontend/nn/attention/attention.h"
#include "frontend/nn/attention/positions.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/conv_layers.h"
#include "frontend/nn/experts.h"
#include "frontend/nn/feed_forward.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/low_rank.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/recurrent/causal_conv.h"
#include "frontend/nn/recurrent/gated_delta_net.h"
#include "frontend/nn/recurrent/mamba2.h"
#include "frontend/nn/recurrent/recurrent.h"
#include "frontend/nn/stacked.h"
#include "frontend/nn/substitution.h"
