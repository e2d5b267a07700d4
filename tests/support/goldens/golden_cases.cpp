#include <fmt/core.h>

#include <limits>

#include "frontend/models/attentions.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/ops/ops.h"
#include "tests/support/goldens/golden.h"

/// The graph of each golden case. Sizes are from the case's config, so that goldens of other sizes run as well.
namespace lathe::golden {

namespace {

double number(const Files& files, const std::string& path) {
  if (const auto value = files.number(path)) return *value;
  throw UserError(fmt::format("the config of {} has no number {}", files.name, path), "golden_config",
                  "write the goldens again with tests/goldens/make_goldens.py");
}

Dim dim(const Files& files, const std::string& path, std::string_view name) {
  return Dim(name, static_cast<std::int64_t>(number(files, path)));
}
Dim dim(const Files& files, const std::string& path) { return dim(files, path, path); }

std::int64_t size(const Files& files, const std::string& tensor, std::size_t axis) {
  return files.tensors.at(tensor).shape().at(axis);
}

void walkthrough(Graph& g, const Files& files, DType dtype) {
  models::attention_walkthrough(g, {.vocab = dim(files, "vocab"),
                                    .d_model = dim(files, "d_model"),
                                    .h = dim(files, "h"),
                                    .pad = static_cast<std::int64_t>(number(files, "pad")),
                                    .fill = number(files, "fill"),
                                    .dtype = dtype});
}

void encoder_decoder(Graph& g, const Files& files, DType dtype) {
  const models::EncoderDecoder model(
      g, {.src_vocab = dim(files, "src_vocab"),
          .tgt_vocab = dim(files, "tgt_vocab"),
          .d_model = dim(files, "d_model"),
          .d_ff = dim(files, "d_ff"),
          .h = dim(files, "h"),
          .d_k = dim(files, "d_k"),
          .d_v = dim(files, "d_v"),
          .layers = static_cast<int>(number(files, "layers")),
          .pad = static_cast<std::int64_t>(number(files, "pad")),
          .pre_norm = files.text("norm") == "pre",
          .activation = files.text("activation") == "gelu" ? nn::Activation::gelu : nn::Activation::relu,
          .label_smoothing = number(files, "label_smoothing"),
          .norm_eps = number(files, "ln_eps"),
          .dtype = dtype});
  const Dim B{"nbatches"}, S{"n_seq_src"}, T{"n_seq_tgt"};
  g.output("loss", model.loss(g.input("src", i64, {B, S}), g.input("tgt", i64, {B, T + 1})));
}

Training encoder_decoder_training(const Files& files) {
  // The schedule of the golden file: 0.5 * d_model^-0.5 * min(step^-0.5, step * 8^-1.5).
  const auto d_model = static_cast<std::int64_t>(number(files, "d_model"));
  return {.optimizer = Adam{.lr = Schedule::noam({.factor = 0.5, .d_model = d_model, .warmup = 8}),
                            .beta1 = 0.9,
                            .beta2 = 0.98,
                            .eps = 1e-9},
          .steps = static_cast<std::int64_t>(number(files, "training.steps"))};
}

void llama_attention(Graph& g, const Files& files, DType dtype) {
  models::llama_attention(g, {.hidden = dim(files, "hidden_size", "hidden"),
                              .H = dim(files, "heads", "H"),
                              .KV = dim(files, "kv_heads", "KV"),
                              .theta = number(files, "rope_theta"),
                              .norm_eps = number(files, "qk_norm_eps"),
                              .dtype = dtype});
}

void einsum_attention(Graph& g, const Files& files, DType dtype) {
  models::einsum_attention(g, {.embed = dim(files, "embed"), .heads = dim(files, "heads"), .dtype = dtype});
}

void einsum_table(Graph& g, const Files&, DType dtype) {
  const Dim n{"n"}, b{"b"}, i{"i"}, j{"j"}, k{"k"};
  const Tensor A = g.input("A", i64, {n, n}), B = g.input("B", i64, {n, n});
  int count = 0;
  for (const std::string_view equation : {"ij,kj->ik", "ij,jk", "ij,jk->ik", "ij,kj->ikj", "ij,kl->ijkl"})
    g.output(fmt::format("int{}", count++), einsum(equation, {A, B}));
  const Tensor X = g.input("X", dtype, {b, i, j}), Y = g.input("Y", dtype, {b, j, k}),
               Z = g.input("Z", dtype, {i, i});
  g.output("f0", einsum("bij,bjk->bik", {X, Y}));
  g.output("f1", einsum("...ij,...jk->...ik", {X, Y}));
  g.output("f2", einsum("ii->", {Z}));
  g.output("f3", einsum("ii->i", {Z}));
  g.output("f4", einsum("ij->ji", {Z}));
  g.output("f5", einsum("bij->j", {X}));
  g.output("f6", einsum("bij,bjk,ii->ki", {X, Y, Z}));
  g.output("f7", einsum(" b i j , b j k -> k b i", {X, Y}));
}

void attention_forms(Graph& g, const Files& files, DType dtype) {
  models::attention_forms(g, {.d = Dim("d", size(files, "in.x", 1)),
                              .h = Dim("h", size(files, "param.W_q", 0)),
                              .d_self = Dim("d_self", size(files, "in.Q", 1)),
                              .dtype = dtype});
}

void mask_edges(Graph& g, const Files& files, DType dtype) {
  const Dim B{"B"}, h{"h", size(files, "in.q", 1)}, S{"S"}, D{"D", size(files, "in.q", 3)};
  const double never = -std::numeric_limits<double>::infinity();
  const Tensor q = g.input("q", dtype, {B, h, S, D}), k = g.input("k", dtype, {B, h, S, D}),
               v = g.input("v", dtype, {B, h, S, D});
  const Tensor m = g.input("mask", boolean, {B, 1, S, S}), m_inf = g.input("mask_inf", boolean, {B, 1, S, S});
  const Tensor s = matmul(q, k.transpose(-2, -1)) / 2.0;  // [B, h, S, S]
  g.output("fill_1e9", matmul(s.masked_fill(~m, -1e9).softmax(-1), v));
  g.output("add_1e9", matmul((s + (~m).to(dtype) * -1e9).softmax(-1), v));
  g.output("fill_inf", matmul(s.masked_fill(~m_inf, never).softmax(-1), v));
  g.output("nan_rows", matmul(s.masked_fill(~m, never).softmax(-1), v));
}

void gpt2(Graph& g, const Files& files, DType dtype) {
  const models::Gpt model(g, {.vocab = dim(files, "vocab"),
                              .context = dim(files, "T", "context"),
                              .d_model = dim(files, "d_model"),
                              .h = dim(files, "heads", "h"),
                              .layers = static_cast<int>(number(files, "layers")),
                              .norm_eps = number(files, "ln_eps"),
                              .dtype = dtype});
  const Dim B{"B"}, T{"T"};
  g.output("loss", model.loss(g.input("tokens", i64, {B, T + 1})));
}

void llama(Graph& g, const Files& files, DType dtype) {
  const models::Llama model(g, {.vocab = dim(files, "vocab"),
                                .d_model = dim(files, "d_model"),
                                .d_ff = dim(files, "d_ff"),
                                .h = dim(files, "heads", "h"),
                                .kv_heads = dim(files, "kv_heads"),
                                .head_dim = dim(files, "head_dim"),
                                .layers = static_cast<int>(number(files, "layers")),
                                .norm_eps = number(files, "rms_eps"),
                                .theta = number(files, "theta"),
                                .dtype = dtype});
  const Dim B{"B"}, T{"T"};
  g.output("loss", model.loss(g.input("tokens", i64, {B, T + 1})));
}

Training adamw_training(const Files& files) {
  return {.optimizer = AdamW{.lr = number(files, "lr"),
                             .beta1 = 0.9,
                             .beta2 = 0.95,
                             .eps = number(files, "eps"),
                             .weight_decay = number(files, "weight_decay")},
          .clip_norm = files.number("clip").value_or(0),
          .steps = static_cast<std::int64_t>(number(files, "steps"))};
}

}  // namespace

std::span<const Case> cases() {
  static const std::vector<Case> all = {
      {"attention_walkthrough", walkthrough, {}, false},
      {"encoder_decoder_pre_relu", encoder_decoder, encoder_decoder_training, false},
      {"encoder_decoder_post_gelu", encoder_decoder, encoder_decoder_training, false},
      {"encoder_decoder_pre_relu_smooth", encoder_decoder, {}, false},
      {"encoder_decoder_post_relu_dv", encoder_decoder, {}, false},
      {"llama_attention", llama_attention, {}, false},
      {"einsum_attention", einsum_attention, {}, false},
      {"einsum_table", einsum_table, {}, false},
      {"attention_forms", attention_forms, {}, false},
      {"mask_edges", mask_edges, {}, true},
      {"gpt2_training", gpt2, adamw_training, false},
      {"llama_training", llama, adamw_training, false},
  };
  return all;
}

const Case& find_case(const std::string& name) {
  for (const Case& each : cases())
    if (each.name == name) return each;
  throw UserError(fmt::format("there is no golden case {}", name), "golden_case", "see tests/goldens/manifest.json");
}

}  // namespace lathe::golden
