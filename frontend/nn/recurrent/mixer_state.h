#pragma once

#include "frontend/tensor.h"

namespace lathe::nn {

/// What a layer with a recurrence keeps of the steps so far. Empty tensors: no step so far.
struct MixerState {
  Tensor conv = {};        ///< the last inputs of its convolution [B, size - 1, channels]
  Tensor recurrence = {};  ///< the state of the recurrence, f32, or f64 for f64
};

/// The outputs of all steps [B, T, d], and the state after the last one.
struct MixerResults {
  Tensor output;
  MixerState state;
};

}  // namespace lathe::nn
