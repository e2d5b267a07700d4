#include <cmath>
#include <limits>

#include "frontend/models/attentions.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

namespace {

struct Weights {
  Tensor q, k, v, o;  // [h, d, f] three times, [h*f, d]
};

double root(const Dim& d) { return std::sqrt(static_cast<double>(d.number())); }

/// softmax(Q K^T / sqrt(d)) V for matrices [n, d].
void self_attention(Graph& g, const AttentionFormsConfig& config, const Dim& n) {
  const Tensor Q = g.input("Q", config.dtype, {n, config.d_self});
  const Tensor K = g.input("K", config.dtype, {n, config.d_self});
  const Tensor V = g.input("V", config.dtype, {n, config.d_self});
  const Tensor weights = softmax(matmul(Q, K.transpose(0, 1)) / root(config.d_self), -1).named("self_weights");
  g.output("self", matmul(weights, V));  // [n, d_self]
}

/// Multi-head attention with heads as the first dim: [n, d] -> [n, d].
Tensor multi_head(const Weights& w, const Tensor& x, const Dim& d, const Dim& f) {
  const Tensor q = einsum("nd,hdf->hnf", {x, w.q}), k = einsum("nd,hdf->hnf", {x, w.k}),
               v = einsum("nd,hdf->hnf", {x, w.v});
  const Tensor weights = softmax(einsum("hnf,hmf->hnm", {q, k}) / root(f), -1);  // [h, n, n]
  const Tensor attended = einsum("hnm,hmf->hnf", {weights, v});                  // [h, n, f]
  return matmul(attended.transpose(0, 1).reshape({x.size(0), d}), w.o);          // [n, d]
}

/// Batched attention with a lower-triangular mask: queries [1, n, d] and source [1, n, d] -> [1, n, d].
Tensor causal(Graph& g, const Weights& w, const Tensor& queries, const Tensor& source, const Dim& d, const Dim& f) {
  const Dim B = queries.size(0), n = queries.size(1), m = source.size(1);
  const Tensor q = einsum("bnd,hdf->bhnf", {queries, w.q}), k = einsum("bnd,hdf->bhnf", {source, w.k}),
               v = einsum("bnd,hdf->bhnf", {source, w.v});
  const Tensor tri = tril(g.full({n, m}, 1, q.dtype())).unsqueeze(0).unsqueeze(1);  // [1, 1, n, m]
  const Tensor scores = einsum("bhnf,bhmf->bhnm", {q, k}) / root(f);                // [1, h, n, m]
  const Tensor weights = softmax(scores.masked_fill(tri == 0, -std::numeric_limits<double>::infinity()), -1);
  const Tensor attended = einsum("bhnm,bhmf->bhnf", {weights, v});            // [1, h, n, f]
  return matmul(attended.transpose(1, 2).contiguous().view({B, n, d}), w.o);  // [1, n, d]
}

}  // namespace

void attention_forms(Graph& g, const AttentionFormsConfig& config) {
  const Dim n{"n"};
  const Dim &d = config.d, &h = config.h;
  const Dim f{"f", d / h};
  self_attention(g, config, n);

  const Tensor x = g.input("x", config.dtype, {n, d});
  const Tensor encoder = g.input("encoder_input", config.dtype, {1, n, d});
  const Tensor decoder = g.input("decoder_input", config.dtype, {1, n, d});
  const Init uniform = Init::uniform({.low = 0, .high = 1});
  const Weights w{.q = g.parameter("W_q", config.dtype, {h, d, f}, uniform),
                  .k = g.parameter("W_k", config.dtype, {h, d, f}, uniform),
                  .v = g.parameter("W_v", config.dtype, {h, d, f}, uniform),
                  .o = g.parameter("W_o", config.dtype, {d, d}, uniform)};
  g.output("multi_head", multi_head(w, x, d, f));
  const Tensor batch = x.unsqueeze(0);  // [1, n, d]
  g.output("causal", causal(g, w, batch, batch, d, f));
  g.output("cross", causal(g, w, decoder, encoder, d, f));
}

}  // namespace lathe::models
