#include <algorithm>
#include <limits>

#include "examples/papers/papers.h"

/// Mamba-2 (Dao and Gu 2024, listing 1): a state-space layer, within chunks as a masked product, and between them as
/// a recurrence of the chunks' states.
namespace lathe::papers {

namespace {

struct Mamba : nn::Layer<Mamba> {
  Mamba(const Module& parent, std::string_view name, const Dim& d, const Dim& h, const Dim& chunk_size)
      : Layer(parent, name, "Mamba"),
        heads(h),
        chunk(chunk_size),
        n(d / 2),
        inner(d * 2),
        in(*this, "in", d, inner * 2 + n * 2 + h, {.bias = false}),
        out(*this, "out", inner, d, {.bias = false}),
        conv(*this, "conv", inner + n * 2, inner + n * 2,
             {.size = 4, .padding = 3, .groups = (inner + n * 2).number()}),
        norm(*this, "norm", inner),
        dt_bias(declare("dt_bias", {h})),
        a_log(declare("a_log", {h})),
        skip(declare("skip", {h})) {}

  Tensor forward(const Tensor& x) const {
    const Dim B = x.size(0), T = x.size(1), p = inner / heads;
    const auto parts = in(x).split({inner, inner + n * 2, heads}, -1);
    const Tensor mixed = silu(conv(parts[1].transpose(1, 2)).slice(2, 0, T).transpose(1, 2));  // causal
    const auto xbc = mixed.split({inner, n, n}, -1);
    const Tensor dt = softplus(parts[2] + dt_bias), u = xbc[0].reshape({B, T, heads, p});
    const Tensor y = scan(u * dt.unsqueeze(-1), -dt * exp(a_log), xbc[1], xbc[2]) + u * Tensor(skip).unsqueeze(-1);
    return out(norm(y.reshape({B, T, inner}) * silu(parts[0])));
  }

  /// y[t] = sum over s <= t of exp(a[s+1] + .. + a[t]) (c[t] . b[s]) u[s] for u [B, T, h, p], a [B, T, h].
  Tensor scan(const Tensor& all_u, const Tensor& all_a, const Tensor& all_b, const Tensor& all_c) const {
    const Dim B = all_u.size(0), T = all_u.size(1), count = T / chunk, p = all_u.size(-1);
    const Tensor u = all_u.reshape({B, count, chunk, heads, p}), a = all_a.reshape({B, count, chunk, heads});
    const Tensor b = all_b.reshape({B, count, chunk, n}), c = all_c.reshape({B, count, chunk, n});
    const Tensor sums = cumsum(a, 2), total = sums.slice(2, chunk - 1);
    const Tensor later = ~u.graph().causal_mask(chunk, chunk).unsqueeze(-1);
    const Tensor gaps = sums.unsqueeze(3) - sums.unsqueeze(2);
    const Tensor decay = exp(gaps.masked_fill(later, -std::numeric_limits<double>::infinity()));
    const Tensor inside = einsum("zkij,zkijh,zkjhp->zkihp", {einsum("zkin,zkjn->zkij", {c, b}), decay, u});
    const Tensor states = einsum("zkjn,zkjhp->zkhpn", {b, u * exp(total - sums).unsqueeze(-1)});
    const Tensor factors = exp(total).squeeze(2).unsqueeze(-1).unsqueeze(-1);
    const Tensor after = linear_recurrence(factors, states, 1);
    const Tensor before = pad(after.slice(1, 0, count - 1), 1, 1, 0);
    const Tensor across = einsum("zkin,zkhpn->zkihp", {c, before}) * exp(sums).unsqueeze(-1);
    return (inside + across).reshape({B, T, heads, p});
  }

  Dim heads, chunk, n, inner;
  nn::Linear in, out;
  nn::Conv1d conv;
  nn::RmsNorm norm;
  nn::Parameter dt_bias, a_log, skip;
};

}  // namespace

Tensor mamba2(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, T{"T", size.length}, d{"d", size.width}, h{"h", size.heads};
  Tensor x = g.input("x", size.dtype, {B, T, d});
  for (std::int64_t i = 0; i < size.layers; ++i)
    x = x + Mamba(root, std::to_string(i), d, h, std::min<std::int64_t>(64, size.length / 2))(rms_norm(x));
  return mse_loss(x, g.input("target", size.dtype, {B, T, d}));
}

}  // namespace lathe::papers
