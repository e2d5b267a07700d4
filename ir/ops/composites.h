#pragma once

#include "ir/tensor/op.h"

/// The records of composite ops, by file. Few passes see one: expand() replaces it by what it is made of.
namespace lathe::ir::ops {

extern const Op matmul, linear, einsum;                           // products.cpp
extern const Op mean, var, logsumexp, argmax;                     // statistics.cpp
extern const Op softmax, log_softmax, layer_norm, rms_norm;       // normalization.cpp
extern const Op relu, gelu, silu, sigmoid, softplus;              // activations.cpp
extern const Op square, reciprocal, clamp;                        // activations.cpp
extern const Op masked_fill, tril, triu, one_hot, stop_gradient;  // masks.cpp
extern const Op cross_entropy, dropout;                           // training.cpp
extern const Op attention, rope;                                  // transformer.cpp
extern const Op dequantize;                                       // quantization.cpp

}  // namespace lathe::ir::ops
