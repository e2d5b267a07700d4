#include <limits>

#include "frontend/dsl.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/nn/attention/relative_bias.h"
#include "frontend/nn/attention/rope.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/experts.h"
#include "tests/frontend/dsl/dsl_errors.h"

namespace lathe::test {

namespace {

const Dim B{"B"}, S{"S"}, h{"h", 8}, d{"d", 6};

Tensor x23(Graph& g) { return g.input("x", f32, {2, 3}); }
Tensor x(Graph& g, const Shape& shape, DType dtype = f32) { return g.input("x", dtype, shape); }
Tensor y(Graph& g, const Shape& shape, DType dtype = f32) { return g.input("y", dtype, shape); }
Tensor z(Graph& g, const Shape& shape, DType dtype = f32) { return g.input("z", dtype, shape); }

Tensor w(Graph& g) { return g.parameter("w", f32, {}); }

/// Bodies of loops.
LoopStep add_first(std::span<const Tensor> carries, std::span<const Tensor> elements) {
  return {{carries[0] + elements[0]}};
}
LoopStep twice(std::span<const Tensor> carries, std::span<const Tensor>) { return {{carries[0], carries[0]}}; }

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

// One row, one line: the line of the row is the line of its op.
// clang-format off
const std::vector<DslError> table = {
    // element-wise
    {__LINE__, "dtype_kind", "bool[2]", [](Graph& g) { exp(x(g, {2}, boolean)); }},
    {__LINE__, "dtype_kind", "f32[2]", [](Graph& g) { ~x(g, {2}); }},
    {__LINE__, "dtype_match", "i64", [](Graph& g) { x(g, {2}) + y(g, {2}, i64); }},
    {__LINE__, "dtype_match", "f64", [](Graph& g) { maximum(x(g, {2}), y(g, {2}, f64)); }},
    {__LINE__, "broadcast", "4", [](Graph& g) { x23(g) * y(g, {2, 4}); }},
    {__LINE__, "broadcast", "d=6", [](Graph& g) { where(x(g, {d}, boolean), y(g, {h}), 1.0); }},
    {__LINE__, "cast_complex", "c64", [](Graph& g) { view_as_complex(x(g, {3, 2})).to(f32); }},
    {__LINE__, "masked_fill_mask", "f32", [](Graph& g) { masked_fill(x23(g), y(g, {2, 3}), 0); }},
    {__LINE__, "masked_fill_value", "0.5", [](Graph& g) { masked_fill(x(g, {2}, i64), y(g, {2}, boolean), 0.5); }},
    {__LINE__, "dtype_kind", "f32[2]", [](Graph& g) { x(g, {2}) & y(g, {2}); }},
    {__LINE__, "dtype_kind", "f32[2]", [](Graph& g) { x(g, {2}) >> 1; }},
    {__LINE__, "dtype_match", "i32", [](Graph& g) { x(g, {2}, i64) | y(g, {2}, i32); }},
    {__LINE__, "dtype_kind", "i64", [](Graph& g) { log1p(x(g, {2}, i64)); }},
    {__LINE__, "dtype_kind", "i64", [](Graph& g) { x(g, {2}, i64).expm1(); }},
    // views and layout
    {__LINE__, "slice_range", "index 2 is out of range for dim 0", [](Graph& g) { x23(g)[2]; }},
    {__LINE__, "slice_range", "index -3 is out of range for dim 0", [](Graph& g) { x23(g)[-3]; }},
    {__LINE__, "index_dtype", "f32", [](Graph& g) { x23(g)[y(g, {2})]; }},
    {__LINE__, "dim_range", "f32[]", [](Graph& g) { x(g, {})[0]; }},
    {__LINE__, "view_numel", "h=8", [](Graph& g) { x(g, {B, S, d}).view({B, S, h}); }},
    {__LINE__, "view_infer", "-1", [](Graph& g) { x23(g).view({-1, -1}); }},
    {__LINE__, "view_stride", "contiguous", [](Graph& g) { x23(g).transpose(0, 1).view({6}); }},
    {__LINE__, "dim_range", "rank 2", [](Graph& g) { x23(g).transpose(0, 2); }},
    {__LINE__, "dim_range", "-3", [](Graph& g) { (void)x23(g).size(-3); }},
    {__LINE__, "dim_negative", "-4", [](Graph& g) { x(g, {1}).expand({-4}); }},
    {__LINE__, "dim_repeat", "1", [](Graph& g) { x23(g).sum({1, -1}); }},
    {__LINE__, "permute_dims", "[0, 0]", [](Graph& g) { x23(g).permute({0, 0}); }},
    {__LINE__, "expand_size", "4", [](Graph& g) { x23(g).expand({2, 4}); }},
    {__LINE__, "expand_rank", "[3]", [](Graph& g) { x23(g).expand({3}); }},
    {__LINE__, "squeeze_size", "3", [](Graph& g) { x23(g).squeeze(1); }},
    {__LINE__, "slice_range", "7", [](Graph& g) { x23(g).slice(1, 0, 7); }},
    {__LINE__, "slice_range", "-4:3", [](Graph& g) { x23(g).slice(1, -4); }},
    {__LINE__, "split_size", "-1", [](Graph& g) { split(x23(g), {-1, 4}, 1); }},
    {__LINE__, "slice_step", "0", [](Graph& g) { x23(g).slice(1, 0, 2, 0); }},
    {__LINE__, "diagonal_size", "3", [](Graph& g) { x23(g).diagonal(); }},
    {__LINE__, "straight_through_shape", "f32[3]", [](Graph& g) { straight_through(x(g, {3}), y(g, {2, 3})); }},
    {__LINE__, "triangle_rank", "rank", [](Graph& g) { tril(x(g, {3})); }},
    // products
    {__LINE__, "matmul_inner", "d=6", [](Graph& g) { matmul(x(g, {B, d}), y(g, {h, 2})); }},
    {__LINE__, "matmul_rank", "rank", [](Graph& g) { matmul(x(g, {}), y(g, {2})); }},
    {__LINE__, "matmul_batch", "h=8", [](Graph& g) { matmul(x(g, {h, 2, 3}), y(g, {d, 3, 2})); }},
    {__LINE__, "outer_rank", "f32[2, 3]", [](Graph& g) { outer(x23(g), y(g, {3})); }},
    {__LINE__, "linear_inner", "d=6", [](Graph& g) { linear(x(g, {B, d}), y(g, {4, h})); }},
    {__LINE__, "linear_rank", "rank", [](Graph& g) { linear(x(g, {}), y(g, {4, h})); }},
    {__LINE__, "linear_weight", "h=8", [](Graph& g) { linear(x(g, {B, d}), y(g, {h})); }},
    {__LINE__, "linear_bias", "5", [](Graph& g) { linear(x(g, {B, d}), y(g, {4, d}), z(g, {5})); }},
    {__LINE__, "einsum_syntax", "ij", [](Graph& g) { einsum("ij->i->", {x23(g)}); }},
    {__LINE__, "einsum_operands", "1", [](Graph& g) { einsum("ij,jk->ik", {x23(g)}); }},
    {__LINE__, "einsum_rank", "ijk", [](Graph& g) { einsum("ijk->i", {x23(g)}); }},
    {__LINE__, "einsum_size", "d=6", [](Graph& g) { einsum("i,i->", {x(g, {d}), y(g, {h})}); }},
    {__LINE__, "einsum_label", "k", [](Graph& g) { einsum("ij->ik", {x23(g)}); }},
    {__LINE__, "matrix_square", "f32[2, 3]", [](Graph& g) { cholesky(x23(g)); }},
    {__LINE__, "triangle_rank", "f32[3]", [](Graph& g) { cholesky(x(g, {3})); }},
    {__LINE__, "solve_shape", "dim 0", [](Graph& g) { solve_triangular(x(g, {3, 3}), y(g, {2, 3})); }},
    {__LINE__, "dtype_match", "f64", [](Graph& g) { solve_triangular(x(g, {3, 3}), y(g, {3, 1}, f64)); }},
    {__LINE__, "basis_columns", "f32[2, 3]", [](Graph& g) { qr(x23(g)); }},
    {__LINE__, "basis_otherwise", "f32[]", [](Graph& g) { orthonormal_basis(x(g, {2, 2}), w(g), y(g, {2, 2})); }},
    {__LINE__, "matrix_square", "f32[2, 3]", [](Graph& g) { eigenvectors(x23(g)); }},
    // indexing and joining
    {__LINE__, "index_dtype", "f32", [](Graph& g) { gather(x23(g), y(g, {2})); }},
    {__LINE__, "index_dtype", "f32", [](Graph& g) { embedding(y(g, {B}), x23(g)); }},
    {__LINE__, "update_rows_positions", "3 dims", [](Graph& g) { update_rows(x23(g), y(g, {2, 1, 1}, i64), z(g, {1, 3})); }},
    {__LINE__, "scatter_indices", "dim 1", [](Graph& g) { scatter(x23(g), y(g, {2, 1}, i64), z(g, {2, 3}), 0); }},
    {__LINE__, "top_k_size", "4 elements", [](Graph& g) { top_k(x23(g), 4); }},
    {__LINE__, "dim_range", "dim 2", [](Graph& g) { cumsum(x23(g), 2); }},
    {__LINE__, "dim_range", "dim 2", [](Graph& g) { sort(x23(g), 2); }},
    {__LINE__, "unfold_size", "spans 5", [](Graph& g) { unfold(x23(g), 1, {.size = 3, .dilation = 2}); }},
    {__LINE__, "unfold_step", "n", [](Graph& g) { unfold(x(g, {Dim("n")}), 0, {.size = 2, .step = 2}); }},
    {__LINE__, "conv_rank", "2 dims", [](Graph& g) { conv1d(x23(g), y(g, {4, 3, 1})); }},
    {__LINE__, "conv_channels", "takes 2", [](Graph& g) { conv1d(x(g, {1, 3, 5}), y(g, {4, 2, 3})); }},
    {__LINE__, "conv_weight", "k", [](Graph& g) { conv1d(x(g, {1, 3, 5}), y(g, {4, 3, Dim("k")})); }},
    {__LINE__, "conv_bias", "[5]", [](Graph& g) { conv1d(x(g, {1, 3, 5}), y(g, {4, 3, 3}), z(g, {5})); }},
    {__LINE__, "conv_options", "stride is 0", [](Graph& g) { conv1d(x(g, {1, 3, 5}), y(g, {4, 3, 3}), {.stride = 0}); }},
    {__LINE__, "conv_size", "spans 7", [](Graph& g) { conv1d(x(g, {1, 3, 5}), y(g, {4, 3, 7})); }},
    {__LINE__, "recurrence_shape", "f32[2, 1]", [](Graph& g) { linear_recurrence(x23(g), y(g, {2, 1}), 1); }},
    {__LINE__, "grouped_rank", "1 dims", [](Graph& g) { grouped_matmul(x(g, {3}), y(g, {2}, i64), {z(g, {4, 3})}); }},
    {__LINE__, "grouped_inner", "dim 1", [](Graph& g) { grouped_matmul(x23(g), y(g, {2}, i64), {z(g, {4, 5})}); }},
    {__LINE__, "grouped_offsets", "1 segments", [](Graph& g) { grouped_matmul(x23(g), y(g, {3}, i64), {z(g, {4, 3})}); }},
    {__LINE__, "update_rows_shape", "rank", [](Graph& g) { update_rows(x23(g), y(g, {1}, i64), z(g, {3})); }},
    {__LINE__, "update_rows_shape", "f32[2, 3]", [](Graph& g) { update_rows(x23(g), y(g, {2}, i64), z(g, {2, 4})); }},
    {__LINE__, "concat_shape", "4", [](Graph& g) { concat({x23(g), y(g, {2, 4})}, 0); }},
    {__LINE__, "concat_rank", "rank", [](Graph& g) { concat({x23(g), y(g, {2})}, 0); }},
    {__LINE__, "pad_size", "-1", [](Graph& g) { pad(x23(g), 0, -1, 0); }},
    {__LINE__, "one_hot_classes", "-1", [](Graph& g) { one_hot(x(g, {2}, i64), -1, f32); }},
    {__LINE__, "constant_count", "3", [](Graph& g) { g.literal({3}, {1, 2}, f32); }},
    {__LINE__, "dequantize_scales", "[2, 2]", [](Graph& g) { dequantize(x(g, {2, 3}, i8), y(g, {2, 2})); }},
    // loops
    {__LINE__, "loop_sequence", "no sequence", [](Graph& g) { scan({x23(g)}, {}, add_first); }},
    {__LINE__, "loop_sequence", "sequence 0", [](Graph& g) { scan({x23(g)}, {y(g, {})}, add_first); }},
    {__LINE__, "loop_carry", "f32[4, 2, 3]", [](Graph& g) { scan({x23(g)}, {y(g, {4, 4, 2, 3})}, add_first); }},
    {__LINE__, "loop_carry", "2 values for 1", [](Graph& g) { scan({x23(g)}, {y(g, {4, 2, 3})}, twice); }},
    {__LINE__, "loop_carry", "no carry", [](Graph&) { repeat(3, std::vector<Tensor>{}, nullptr); }},
    {__LINE__, "loop_operand", "5 elements", [](Graph& g) { scan({x23(g)}, {y(g, {4, 2, 3}), z(g, {5, 2, 3})}, add_first); }},
    {__LINE__, "loop_checkpoint", "-1", [](Graph& g) { repeat(3, {x23(g)}, {}, {.checkpoint_every = -1}); }},
    {__LINE__, "loop_checkpoint", "B iterations", [](Graph& g) { scan({x23(g)}, {y(g, {B, 2, 3})}, add_first, {.checkpoint_every = 4}); }},
    {__LINE__, "loop_body", "same numbers", [](Graph& g) { const Tensor rng = g.random_state(); repeat(3, x23(g), [=](auto& a, auto&) { return dropout(a, rng, 0.5); }); }},
    {__LINE__, "loop_body", "no input", [](Graph& g) { repeat(3, x23(g), [](auto& a, auto&) { return a + a.graph().input("z", f32, {3}); }); }},
    {__LINE__, "loop_body", "no output", [](Graph& g) { repeat(3, x23(g), [](auto& a, auto&) { return a.graph().output("z", a), a; }); }},
    {__LINE__, "loop_body", "no update", [](Graph& g) { repeat(3, x23(g), [](auto& a, auto&) { return a.graph().update(a, a), a; }); }},
    {__LINE__, "op_other_graph", "one iteration", [](Graph& g) { Tensor kept; repeat(3, x23(g), [&](auto& a, auto&) { return kept = a + 1; }); relu(kept + y(g, {3})); }},
    // reductions and networks
    {__LINE__, "argmax_empty", "0", [](Graph& g) { x(g, {2, 0}).argmax(1); }},
    {__LINE__, "norm_rank", "rank", [](Graph& g) { rms_norm(x(g, {})); }},
    {__LINE__, "norm_weight", "h=8", [](Graph& g) { rms_norm(x(g, {B, d}), y(g, {h})); }},
    {__LINE__, "cross_entropy_rank", "rank", [](Graph& g) { cross_entropy(x(g, {}), y(g, {}, i64)); }},
    {__LINE__, "cross_entropy_shape", "5", [](Graph& g) { cross_entropy(x(g, {4, d}), y(g, {5}, i64)); }},
    {__LINE__, "cross_entropy_targets", "f32", [](Graph& g) { cross_entropy(x(g, {B, d}), y(g, {B})); }},
    {__LINE__, "cross_entropy_smoothing", "2", [](Graph& g) { cross_entropy(x(g, {B, d}), y(g, {B}, i64), {}, 2); }},
    {__LINE__, "cross_entropy_targets", "ignore_index=7", [](Graph& g) { cross_entropy(x23(g), y(g, {2, 3}), 7); }},
    {__LINE__, "cross_entropy_smoothing", "-1", [](Graph& g) { cross_entropy(x23(g), y(g, {2, 3}), {}, -1); }},
    {__LINE__, "loss_shape", "[2, 4]", [](Graph& g) { cross_entropy(x23(g), y(g, {2, 4})); }},
    {__LINE__, "loss_shape", "[3, 2]", [](Graph& g) { binary_cross_entropy_with_logits(x23(g), y(g, {3, 2})); }},
    {__LINE__, "loss_shape", "d=6", [](Graph& g) { kl_divergence(x(g, {d}), y(g, {h})); }},
    {__LINE__, "loss_shape", "no classes", [](Graph& g) { kl_divergence(x(g, {}), y(g, {})); }},
    {__LINE__, "broadcast", "4", [](Graph& g) { mse_loss(x23(g), y(g, {4})); }},
    {__LINE__, "dtype_kind", "i64", [](Graph& g) { softplus(x(g, {2}, i64)); }},
    {__LINE__, "random_range", "low is 2", [](Graph& g) { g.random_uniform({2}, f32, {.low = 2, .high = 1}); }},
    {__LINE__, "random_range", "deviation -1", [](Graph& g) { g.random_normal({2}, f32, {.mean = 0, .deviation = -1}); }},
    {__LINE__, "dropout_p", "1.5", [](Graph& g) { dropout(x23(g), g.random_state(), 1.5); }},
    {__LINE__, "dropout_state", "i64[3]", [](Graph& g) { dropout(x23(g), y(g, {3}, i64), 0.5); }},
    {__LINE__, "attention_rank", "rank", [](Graph& g) { const Tensor a = x(g, {d}); attention(a, a, a, {}, 1, false); }},
    {__LINE__, "attention_width", "h=8", [](Graph& g) { const Tensor k = y(g, {S, h}); attention(x(g, {B, d}), k, k, {}, 1, false); }},
    {__LINE__, "attention_length", "5", [](Graph& g) { attention(x(g, {2, d}), y(g, {4, d}), z(g, {5, d}), {}, 1, false); }},
    {__LINE__, "attention_mask", "i64", [](Graph& g) { const Tensor a = x(g, {2, d}); attention(a, a, a, y(g, {2, 2}, i64), 1, false); }},
    {__LINE__, "attention_offset", "i32[]", [](Graph& g) { const Tensor a = x(g, {2, d}); attention(a, a, a, {}, 1, Causal::from(y(g, {}, i32))); }},
    {__LINE__, "attention_offset", "i64[2]", [](Graph& g) { const Tensor a = x(g, {2, d}); attention(a, a, a, {}, 1, Causal::from(y(g, {2}, i64))); }},
    {__LINE__, "rope_even", "3", [](Graph& g) { rope(x23(g), y(g, {2, 3}), z(g, {2, 3})); }},
    {__LINE__, "rope_shape", "4", [](Graph& g) { rope(x(g, {5, d}), y(g, {4, d}), z(g, {4, d})); }},
    {__LINE__, "complex_pair", "3", [](Graph& g) { view_as_complex(x23(g)); }},
    // the graph itself
    {__LINE__, "argument_name", "x", [](Graph& g) { x(g, {2}); g.input("x", f32, {3}); }},
    {__LINE__, "output_name", "y", [](Graph& g) { const Tensor a = x23(g); g.output("y", a); g.output("y", a); }},
    {__LINE__, "update_type", "f32[3]", [](Graph& g) { g.update(g.state("s", f32, {2}), y(g, {3})); }},
    {__LINE__, "grad_scalar", "[2, 3]", [](Graph& g) { const Tensor a = x23(g); grad(exp(a), {a}); }},
    {__LINE__, "argument_unknown", "'y'", [](Graph& g) { g.parameter("y", f32, {2}); g.set_initializer("Y", Init::zeros()); }},
    {__LINE__, "grad_wrt_unused", "y", [](Graph& g) { grad(x(g, {}), {g.input("y", f32, {2})}); }},
    // options
    {__LINE__, "norm_eps", "eps is -1", [](Graph& g) { rms_norm(x23(g), -1); }},
    {__LINE__, "norm_eps", "eps is inf", [](Graph& g) { nn::LayerNorm(g, "ln", 3, {.eps = infinity})(x23(g)); }},
    {__LINE__, "dropout_rate", "rate is 1", [](Graph&) { nn::Dropout(1); }},
    {__LINE__, "dropout_rate", "rate is nan", [](Graph& g) { nn::MultiHeadAttention(g, "a", 4, 2, {.dropout = nan}); }},
    {__LINE__, "dropout_rate", "rate is -0.1", [](Graph& g) { models::Gpt(g, {.dropout = -0.1}); }},
    {__LINE__, "dropout_rate", "rate is 2", [](Graph& g) { models::EncoderDecoder(g, {.dropout = 2}); }},
    {__LINE__, "dim_divide", "h=8 does not divide d=6", [](Graph&) { (void)(d / h); }},
    {__LINE__, "dim_unbound", "B is not a number", [](Graph&) { (void)B.number(); }},
    {__LINE__, "parameter_graph", "w", [](Graph&) { (void)Tensor(nn::Linear(nn::Module(), "w", d, h).weight()); }},
    {__LINE__, "experts_options", "chosen is 9", [](Graph& g) { nn::Experts(g, "moe", d, d, {.chosen = 9}); }},
    {__LINE__, "experts_options", "capacity_factor is -1", [](Graph& g) { nn::Experts(g, "moe", d, d, {.capacity_factor = -1}); }},
    {__LINE__, "attention_heads", "10", [](Graph& g) { nn::MultiHeadAttention(g, "a", Dim{"d", 10}, 3); }},
    {__LINE__, "attention_heads", "7 heads", [](Graph& g) { models::Gpt(g, {.h = 7}); }},
    {__LINE__, "attention_heads", "4 key heads", [](Graph& g) { models::Llama(g, {.h = 6, .kv_heads = 4}); }},
    {__LINE__, "attention_heads", "7 heads", [](Graph& g) { models::EncoderDecoder(g, {.h = 7}); }},
    {__LINE__, "positions_even", "3", [](Graph& g) { nn::sinusoidal_positions(g, B, 3); }},
    {__LINE__, "train_loss", "f32[2, 3]", [](Graph& g) { training_step(g, x23(g) * 1, SGD{}); }},
    {__LINE__, "train_parameters", "no trainable parameter", [](Graph& g) { training_step(g, x(g, {}) * 1, SGD{}); }},
    {__LINE__, "train_options", "norm -1", [](Graph& g) { training_step(g, w(g), SGD{}, {.clip_norm = -1}); }},
    {__LINE__, "train_options", "norm nan", [](Graph& g) { training_step(g, w(g), SGD{}, {.clip_norm = nan}); }},
    {__LINE__, "train_options", "0 micro-batches", [](Graph& g) { training_step(g, w(g), SGD{}, {.accumulate = 0}); }},
    {__LINE__, "optimizer_options", "SGD: lr is -0.1", [](Graph& g) { training_step(g, w(g), SGD{.lr = -0.1}); }},
    {__LINE__, "optimizer_options", "SGD: lr is nan", [](Graph& g) { training_step(g, w(g), SGD{.lr = nan}, {.precision = bf16}); }},
    {__LINE__, "optimizer_options", "momentum is -1", [](Graph& g) { training_step(g, w(g), SGD{.momentum = -1}); }},
    {__LINE__, "optimizer_options", "Adam: lr is inf", [](Graph& g) { training_step(g, w(g), Adam{.lr = infinity}); }},
    {__LINE__, "optimizer_options", "beta1 is 1, not in [0, 1)", [](Graph& g) { training_step(g, w(g), Adam{.beta1 = 1}); }},
    {__LINE__, "optimizer_options", "beta2 is nan", [](Graph& g) { training_step(g, w(g), AdamW{.beta2 = nan}); }},
    {__LINE__, "optimizer_options", "eps is -1e-08", [](Graph& g) { training_step(g, w(g), AdamW{.eps = -1e-8}); }},
    {__LINE__, "optimizer_options", "weight_decay is -1", [](Graph& g) { training_step(g, w(g), AdamW{.weight_decay = -1}); }},
    {__LINE__, "optimizer_options", "peak of lr is -1", [](Graph& g) { training_step(g, w(g), AdamW{.lr = Schedule::warmup_cosine({.peak = -1, .warmup = 1, .total = 9})}); }},
    {__LINE__, "optimizer_options", "floor of lr is nan", [](Graph& g) { training_step(g, w(g), AdamW{.lr = Schedule::warmup_cosine({.peak = 1, .warmup = 1, .total = 9, .floor = nan})}); }},
    {__LINE__, "optimizer_options", "scale of lr is -", [](Graph& g) { training_step(g, w(g), AdamW{.lr = Schedule::noam({.factor = -1, .d_model = 4, .warmup = 9})}); }},
    {__LINE__, "optimizer_options", "gamma is inf", [](Graph& g) { training_step(g, w(g), AdamW{.lr = Schedule::step_decay({.rate = 1, .every = 2, .gamma = infinity})}); }},
    {__LINE__, "train_options", "scale from 1e+39", [](Graph& g) { training_step(g, w(g), SGD{}, {.precision = f16, .loss_scaling = {.start = 1e39}}); }},
    {__LINE__, "train_options", "after 0 steps", [](Graph& g) { training_step(g, w(g), SGD{}, {.precision = f16, .loss_scaling = {.growth_interval = 0}}); }},
    {__LINE__, "schedule_steps", "10 steps of warm-up in 10", [](Graph&) { Schedule::warmup_cosine({.peak = 1, .warmup = 10, .total = 10}); }},
    {__LINE__, "schedule_steps", "-1 steps of warm-up", [](Graph&) { Schedule::warmup_cosine({.peak = 1, .warmup = -1, .total = 10}); }},
    {__LINE__, "schedule_steps", "0 steps of warm-up", [](Graph&) { Schedule::inverse_sqrt({.scale = 1, .warmup = 0}); }},
    {__LINE__, "schedule_steps", "d_model is 0", [](Graph&) { Schedule::noam({.factor = 1, .d_model = 0, .warmup = 5}); }},
    {__LINE__, "schedule_steps", "-2 steps of warm-up", [](Graph&) { Schedule::step_decay({.rate = 1, .every = 3, .gamma = 0.5, .warmup = -2}); }},
    {__LINE__, "schedule_steps", "a decay every 0 steps", [](Graph&) { Schedule::step_decay({.rate = 1, .every = 0, .gamma = 0.5}); }},
    {__LINE__, "init_options", "p starts from a standard deviation of -1", [](Graph& g) { g.parameter("p", f32, {2}, Init::normal({.deviation = -1})); }},
    {__LINE__, "init_options", "around nan", [](Graph& g) { g.state("p", f32, {2}, Init::normal({.mean = nan, .deviation = 1})); }},
    {__LINE__, "init_options", "in [2, 1)", [](Graph& g) { w(g); g.set_initializer("w", Init::uniform({.low = 2, .high = 1})); }},
    {__LINE__, "init_options", "fc.weight starts from a gain of inf", [](Graph& g) { nn::Linear(g, "fc", 2, 3, {.weight = Init::xavier_uniform(infinity)}); }},
    {__LINE__, "attention_options", "soft_cap is -1", [](Graph& g) { const Tensor a = x(g, {1, 2, 3, 4}); nn::AttentionContext(3).attend(a, a, a, {.soft_cap = -1}); }},
    {__LINE__, "attention_options", "the scale is nan", [](Graph& g) { const Tensor a = x(g, {1, 2, 3, 4}); nn::AttentionContext(3).attend(a, a, a, {.scale = nan}); }},
    {__LINE__, "attention_options", "the window is 0", [](Graph& g) { const Tensor a = x(g, {1, 2, 3, 4}); nn::AttentionContext(3).attend(a, a, a, {.window = 0}); }},
    {__LINE__, "attention_options", "the window is 2", [](Graph& g) { const Tensor a = x(g, {1, 2, 3, 4}); nn::AttentionContext::bidirectional().attend(a, a, a, {.window = 2}); }},
    {__LINE__, "attention_options", "one layer", [](Graph& g) { const Tensor a = x(g, {1, 3, 8}); nn::SelfAttention(g, "a", {.hidden = 8, .h = 2, .kv = 2, .d = 4, .projections = nn::Projections::stacked}).across(a, a, nn::AttentionContext::bidirectional()); }},
    {__LINE__, "relative_bias_options", "buckets is 3", [](Graph& g) { nn::RelativeBias(g, "b", h, {.buckets = 3}); }},
    {__LINE__, "relative_bias_options", "max_distance is 8", [](Graph& g) { nn::RelativeBias(g, "b", h, {.max_distance = 8}); }},
    {__LINE__, "rope_options", "theta is 0", [](Graph& g) { nn::rope_tables(x(g, {B}, i64), 4, {.theta = 0}, f32); }},
    {__LINE__, "rope_options", "factor is -2", [](Graph& g) { nn::rope_tables(x(g, {B}, i64), 4, {.scaling = nn::RopeOptions::Scaling::linear, .factor = -2}, f32); }},
    {__LINE__, "rope_options", "original_length is 0", [](Graph& g) { nn::rope_tables(x(g, {B}, i64), 4, {.scaling = nn::RopeOptions::Scaling::yarn}, f32); }},
    {__LINE__, "rope_options", "max_length is 0", [](Graph& g) { nn::rope_tables(x(g, {B}, i64), 4, {.scaling = nn::RopeOptions::Scaling::dynamic}, f32); }},
    {__LINE__, "rope_lengths", "lengths have 3 dims", [](Graph& g) { nn::rope_tables(x(g, {B}, i64), 4, {}, f32, y(g, {B, S, 1}, i64)); }},
    // tensors without a value
    {__LINE__, "tensor_empty", "tensor:", [](Graph&) { (void)Tensor().shape(); }},
    {__LINE__, "tensor_empty", "tensor:", [](Graph&) { (void)Tensor().size(0); }},
    {__LINE__, "tensor_empty", "tensor:", [](Graph&) { Tensor().named("h"); }},
    {__LINE__, "tensor_empty", "softmax: the tensor", [](Graph&) { Tensor().softmax(-1); }},
    {__LINE__, "tensor_empty", "add: operand 1 of 2", [](Graph& g) { Tensor() + x23(g); }},
    {__LINE__, "tensor_empty", "matmul: operand 2 of 2", [](Graph& g) { matmul(x23(g), Tensor()); }},
    {__LINE__, "tensor_empty", "concat: operand 3 of 3", [](Graph& g) { concat({x23(g), y(g, {2, 3}), Tensor()}, 0); }},
    {__LINE__, "tensor_empty", "split: the tensor", [](Graph&) { Tensor().split(2, 0); }},
    {__LINE__, "tensor_empty", "attention:", [](Graph& g) { const Tensor a = x(g, {2, d}); attention(a, a, a, Tensor(), 1, false); }},
    {__LINE__, "tensor_empty", "attention:", [](Graph& g) { const Tensor a = x(g, {2, d}); attention(a, a, a, {}, 1, Causal::from(Tensor())); }},
    {__LINE__, "tensor_empty", "tensor:", [](Graph& g) { nn::Linear(g, "fc", 2, 3)(Tensor()); }},
    {__LINE__, "tensor_empty", "output: the tensor", [](Graph& g) { g.output("y", Tensor()); }},
    {__LINE__, "tensor_empty", "update: operand 2 of 2", [](Graph& g) { g.update(g.state("s", f32, {2}), Tensor()); }},
    {__LINE__, "tensor_empty", "grad: operand 2 of 2", [](Graph& g) { grad(x(g, {}), {Tensor()}); }},
    {__LINE__, "tensor_empty", "training_step:", [](Graph& g) { training_step(g, Tensor(), SGD{}); }},
    // tensors of two graphs, and a graph that was moved from
    {__LINE__, "op_other_graph", "x (dsl_errors_table.cpp:", [](Graph& g) { Graph o("other"); y(g, {2, 3}) + x23(o); }},
    {__LINE__, "op_other_graph", "the exp (", [](Graph& g) { Graph o("other"); where(x(g, {2}, boolean), exp(y(o, {2})), 1.0); }},
    {__LINE__, "op_other_graph", "another graph, which is named @wrong too", [](Graph& g) { Graph o("wrong"); y(g, {2, 3}) + x23(o); }},
    {__LINE__, "op_other_graph", "to graph @other, not to @wrong", [](Graph& g) { Graph o("other"); stack({y(g, {2, 3}), x23(o)}, 0); }},
    {__LINE__, "op_other_graph", "@other", [](Graph& g) { Graph o("other"); const Tensor a = y(g, {2, d}); attention(a, a, a, x(o, {2, 2}, boolean), 1, false); }},
    {__LINE__, "op_other_graph", "@other", [](Graph& g) { Graph o("other"); const Tensor a = y(g, {2, d}); attention(a, a, a, {}, 1, Causal::from(x(o, {}, i64))); }},
    {__LINE__, "op_other_graph", "output", [](Graph& g) { Graph o("other"); g.input("y", f32, {}); g.output("x", x(o, {})); }},
    {__LINE__, "op_other_graph", "update", [](Graph& g) { Graph o("other"); g.update(o.state("s", f32, {}), o.constant(1, f32)); }},
    {__LINE__, "op_other_graph", "grad", [](Graph& g) { Graph o("other"); grad(x(g, {}), {y(o, {})}); }},
    {__LINE__, "op_other_graph", "training_step", [](Graph& g) { Graph o("other"); training_step(g, x(o, {}), SGD{}); }},
    {__LINE__, "graph_moved", "moved", [](Graph& g) { const Graph now = std::move(g); g.input("x", f32, {}); }},
    {__LINE__, "graph_moved", "moved", [](Graph& g) { g.random_state(); const Graph now = std::move(g); g.random_state(); }},
    {__LINE__, "graph_moved", "moved", [](Graph& g) { const Graph now = std::move(g); (void)g.finish(); }},
    {__LINE__, "graph_moved", "moved", [](Graph& g) { const Graph now = std::move(g); (void)g.scope("a"); }},
    {__LINE__, "graph_moved", "moved", [](Graph& g) { const Tensor a = x(g, {}); const Graph now = std::move(g); training_step(g, a, SGD{}); }},
};
// clang-format on

}  // namespace

const std::vector<DslError>& dsl_errors() { return table; }

}  // namespace lathe::test
