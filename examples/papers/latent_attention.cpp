#include "examples/papers/papers.h"

/// Multi-head latent attention (DeepSeek-V2, section 2.1): queries, keys and values come from narrow latent vectors,
/// of which a cache keeps one per token; positions rotate separate dims, which all heads share in the keys.
namespace lathe::papers {

namespace {

struct LatentAttention : nn::Layer<LatentAttention> {
  LatentAttention(const Module& parent, std::string_view name, const Dim& d, const Dim& h)
      : Layer(parent, name, "LatentAttention"),
        heads(h),
        plain(d / h),
        rotated(d / h / 2),
        latent(d / 2),
        q_down(*this, "q_down", d, d / 2, {.bias = false}),
        q_up(*this, "q_up", d / 2, h * (plain + rotated), {.bias = false}),
        kv_down(*this, "kv_down", d, latent + rotated, {.bias = false}),
        kv_up(*this, "kv_up", latent, h * plain * 2, {.bias = false}),
        out(*this, "out", d, d, {.bias = false}),
        q_norm(*this, "q_norm", d / 2),
        kv_norm(*this, "kv_norm", latent) {}

  Tensor forward(const Tensor& x, const nn::RotaryTables& tables) const {
    const Dim B = x.size(0), T = x.size(1);
    const auto rotate = [&](const Tensor& part) { return rope(part, tables.cos, tables.sin); };
    const auto q = nn::split_heads(q_up(q_norm(q_down(x))), heads, plain + rotated).split({plain, rotated}, -1);
    const auto down = kv_down(x).split({latent, rotated}, -1);  // the cache of generation
    const auto kv = nn::split_heads(kv_up(kv_norm(down[0])), heads, plain * 2).split({plain, plain}, -1);
    const Tensor shared = rotate(down[1].unsqueeze(1)).expand({B, heads, T, rotated});
    const Tensor queries = concat({q[0], rotate(q[1])}, -1), keys = concat({kv[0], shared}, -1);
    return out(nn::merge_heads(attention(queries, keys, kv[1], true), x.size(-1)));
  }

  Dim heads, plain, rotated, latent;
  nn::Linear q_down, q_up, kv_down, kv_up, out;
  nn::RmsNorm q_norm, kv_norm;
};

}  // namespace

Tensor latent_attention(const Graph& g, const Size& size) {
  const nn::Module root(g, size.dtype);
  const Dim B{"B", size.batch}, T{"T", size.length}, d{"d", size.width}, h{"h", size.heads};
  Tensor x = g.input("x", size.dtype, {B, T, d});
  const nn::RotaryTables tables = nn::rotary_tables(g, T, d / h / 2, size.dtype);
  for (std::int64_t i = 0; i < size.layers; ++i) {
    const auto layer = std::to_string(i);
    x = x + LatentAttention(root, layer, d, h)(rms_norm(x), tables);
  }
  return mse_loss(x, g.input("target", size.dtype, {B, T, d}));
}

}  // namespace lathe::papers
