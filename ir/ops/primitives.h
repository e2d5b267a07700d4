#pragma once

#include "ir/tensor/op.h"

/// The records of primitive ops, by family. A pass names an op by its record: `node.op == &ops::gather`.
/// Composites: ir/ops/composites.h.
namespace lathe::ir::ops {

// Arguments                                                        (arguments.cpp)
extern const Op input, parameter, state;

// Values from nothing or from random bits                          (sources.cpp)
extern const Op constant, iota, random_uniform, random_uniform_at;

// Element-wise primitives, one ScalarOp each                       (arithmetic.cpp, transcendental.cpp, logic.cpp)
extern const Op add, sub, mul, div, rem, minimum, maximum, pow, neg, abs, sign, floor, round;
extern const Op exp, log, sqrt, rsqrt, sin, cos, tanh, erf;
extern const Op eq, ne, lt, le, logical_and, logical_or, logical_not, where, cast;

// Views: strides change, nothing is copied                         (views.cpp, slices.cpp; view: layout.cpp)
extern const Op transpose, permute, expand, slice, view, unsqueeze, squeeze, diagonal;
// A view or a copy, as strides demand                              (layout.cpp)
extern const Op reshape, contiguous;

// Reductions                                                       (reductions.cpp)
extern const Op sum, max, min;

// The product                                                      (contraction.cpp)
extern const Op contract;

// Indexing and joining                                             (indexing.cpp, row_updates.cpp, joining.cpp)
extern const Op gather, scatter_add, update_rows, concat, pad;

// Exchanges between the processes of a mesh                        (collectives.cpp)
extern const Op mesh_index, all_reduce, all_gather, reduce_scatter, all_to_all;
// Along a dim                                                      (scans.cpp, sorting.cpp)
extern const Op cumsum, argsort, top_k;

// Products of segments of rows                                     (grouped_products.cpp)
extern const Op grouped_matmul, segment_outer;

// Complex numbers                                                  (complex.cpp)
extern const Op view_as_complex, view_as_real, conj, polar;

}  // namespace lathe::ir::ops
