#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "frontend/ops/ops.h"
#include "frontend/tensor.h"

/// Functions that are composed of other ops, and second forms of methods and functions. Shapes are in brackets.
namespace lathe {

// ---- reductions; no axes: over all dims
Tensor sum(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
Tensor mean(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
Tensor max(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
Tensor min(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
/// The variance, divided by the number of elements minus `correction`.
Tensor var(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, std::int64_t correction = 1,
           Where at = Where::current());
/// log(sum(exp(a))) without overflow.
Tensor logsumexp(const Tensor& a, DimIndex dim, Flag keepdim = false, Where at = Where::current());
/// The index of the largest element, i64; the first one on a tie.
Tensor argmax(const Tensor& a, DimIndex dim, Where at = Where::current());
/// The index of the smallest element, i64; the first one on a tie.
Tensor argmin(const Tensor& a, DimIndex dim, Where at = Where::current());
/// The product; 1 over no elements. Its gradient is exact with any number of zeros.
Tensor prod(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
/// Whether any element of a bool tensor is true; false for no elements.
Tensor any(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
/// Whether all elements of a bool tensor are true; true for no elements.
Tensor all(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
/// The root of the sum of squares. Its gradient at zeros is 0.
Tensor norm(const Tensor& a, const Axes& axes = {}, Flag keepdim = false, Where at = Where::current());
/// a / max(norm(a), eps) along a dim, as torch.nn.functional.normalize.
Tensor normalize(const Tensor& a, DimIndex dim = -1, double eps = 1e-12, Where at = Where::current());

// ---- element-wise
/// The smallest whole number not below a; its gradient is 0.
Tensor ceil(const Tensor& a, Where at = Where::current());
/// The whole number next to a towards 0; its gradient is 0.
Tensor trunc(const Tensor& a, Where at = Where::current());
/// Whether elements are NaN.
Tensor isnan(const Tensor& a, Where at = Where::current());
/// Whether elements are neither NaN nor infinite.
Tensor isfinite(const Tensor& a, Where at = Where::current());
/// The larger of a number and b, or the smaller one; NaN if b is.
Tensor maximum(const Number& a, const Tensor& b, Where at = Where::current());
Tensor minimum(const Number& a, const Tensor& b, Where at = Where::current());
/// a to the power b, for a number a.
Tensor pow(const Number& a, const Tensor& b, Where at = Where::current());

/// The same values, as constants for gradients.
Tensor detach(const Tensor& a, Where at = Where::current());

// ---- shapes
Tensor view(const Tensor& a, const Shape& shape, Where at = Where::current());
Tensor reshape(const Tensor& a, const Shape& shape, Where at = Where::current());
Tensor transpose(const Tensor& a, DimIndex dim0, DimIndex dim1, Where at = Where::current());
Tensor permute(const Tensor& a, const std::vector<std::int64_t>& dims, Where at = Where::current());
Tensor expand(const Tensor& a, const Shape& shape, Where at = Where::current());
Tensor unsqueeze(const Tensor& a, DimIndex dim, Where at = Where::current());
Tensor squeeze(const Tensor& a, DimIndex dim, Where at = Where::current());
/// Merges the dims from first to last.
Tensor flatten(const Tensor& a, DimIndex first, DimIndex last, Where at = Where::current());
/// The elements start, start + step, .. below stop of one dim, without a copy. [slice_range] [slice_step]
Tensor slice(const Tensor& a, DimIndex dim, const Dim& start, const Dim& stop, std::int64_t step = 1,
             Where at = Where::current());
/// From `start` to the end.
Tensor slice(const Tensor& a, DimIndex dim, const Dim& start, Where at = Where::current());
/// The part of a dim at one index, without that dim; negative indices count from the end.
Tensor select(const Tensor& a, DimIndex dim, const Dim& index, Where at = Where::current());
/// Slices of `size` indices of a dim each; the last one may have fewer. [split_size]
std::vector<Tensor> split(const Tensor& a, const Dim& size, DimIndex dim, Where at = Where::current());
/// Slices of the given sizes, which are not negative and add up to that of the dim. [split_size]
std::vector<Tensor> split(const Tensor& a, std::initializer_list<Dim> sizes, DimIndex dim,
                          Where at = Where::current());
/// `chunks` slices of equal size along a dim. [chunk_size]
std::vector<Tensor> chunk(const Tensor& a, std::int64_t chunks, DimIndex dim, Where at = Where::current());
Tensor diagonal(const Tensor& a, DimIndex dim0 = 0, DimIndex dim1 = 1, Where at = Where::current());
/// Each element of a dim `times` times.
Tensor repeat_interleave(const Tensor& a, std::int64_t times, DimIndex dim, Where at = Where::current());
/// Zeros, or ones, in the shape and dtype of `a`.
Tensor zeros_like(const Tensor& a, Where at = Where::current());
Tensor ones_like(const Tensor& a, Where at = Where::current());
/// The elements of a dim in reverse order.
Tensor flip(const Tensor& a, DimIndex dim, Where at = Where::current());
/// torch.roll along a dim: element i moves to i + shift, and around the ends. A negative shift moves to the front. If
/// the size or the shift is unknown, the shift is from -size to size. [slice_range]
Tensor roll(const Tensor& a, const Dim& shift, DimIndex dim, Where at = Where::current());
/// a [n], b [m] -> [n, m]. [outer_rank]
Tensor outer(const Tensor& a, const Tensor& b, Where at = Where::current());

// ---- networks
/// (x - mean) / sqrt(variance + eps) over the last dim.
Tensor layer_norm(const Tensor& x, double eps = 1e-5, Where at = Where::current());
/// Zeroes each element with probability p and scales the others by 1 / (1 - p). Draws from Graph::random_state() of
/// the graph of `a`.
Tensor dropout(const Tensor& a, double p, Where at = Where::current());
/// Attention without a mask, or with a causal one; scores are divided by the root of the size of a head, which must
/// be known [attention_scale]. Otherwise as attention() with all arguments.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Causal& causal = false,
                 Where at = Where::current());

}  // namespace lathe
