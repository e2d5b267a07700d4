#include <fmt/core.h>

#include <array>
#include <random>

#include "frontend/models/attentions.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/step.h"
#include "frontend/train/training.h"
#include "ir/ops/functional/functional_composites.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dtypes/mixed_precision.h"
#include "passes/transforms/rebuild.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

namespace {

using Random = std::mt19937;

std::int64_t draw(Random& random, std::initializer_list<std::int64_t> choices) {
  return choices.begin()[random() % choices.size()];
}

Dim sized(const char* name, std::int64_t size) { return Dim(name, size); }

/// Returns the graph with one more output, "loss": the mean square of all outputs.
ir::Graph with_loss(const ir::Graph& graph) {
  ir::GraphBuilder builder(graph.name);
  ir::Rebuilder to(builder, graph);
  to.copy_rest();
  to.close();
  std::optional<ir::Value> loss;
  for (const ir::Output& output : graph.outputs) {
    const ir::Value part = ir::mean(ir::square(to[output.value]));
    loss = loss ? ir::add(*loss, part) : part;
  }
  builder.output("loss", *loss);
  return builder.finish();
}

template <class Build>
ir::Graph attention(const char* name, Build build) {
  lathe::Graph g(name);
  build(g);
  return with_loss(g.finish());
}

ir::Graph gpt(Random& random, DType dtype) {
  const std::int64_t heads = draw(random, {1, 2, 3}), per_head = draw(random, {4, 8, 5});
  return models::loss_graph(models::GptConfig{.vocab = sized("vocab", draw(random, {7, 11, 16})),
                                              .context = sized("context", 16),
                                              .d_model = sized("d_model", heads * per_head),
                                              .h = sized("h", heads),
                                              .layers = random() % 4 ? 1 : 2,
                                              .dropout = random() % 3 ? 0 : 0.2,
                                              .dtype = dtype})
      .graph;
}

ir::Graph llama(Random& random, DType dtype) {
  const std::int64_t kv = draw(random, {1, 2}), groups = draw(random, {1, 2, 3}), per_head = draw(random, {4, 6, 8});
  return models::loss_graph(models::LlamaConfig{.vocab = sized("vocab", draw(random, {7, 11, 16})),
                                                .d_model = sized("d_model", draw(random, {8, 12, 15})),
                                                .d_ff = sized("d_ff", draw(random, {9, 16, 20})),
                                                .h = sized("h", kv * groups),
                                                .kv_heads = sized("kv_heads", kv),
                                                .head_dim = sized("head_dim", per_head),
                                                .layers = random() % 4 ? 1 : 2,
                                                .dtype = dtype})
      .graph;
}

ir::Graph encoder_decoder(Random& random, DType dtype) {
  const std::int64_t heads = draw(random, {1, 2}), per_head = draw(random, {4, 6, 8});
  return models::loss_graph(
             models::EncoderDecoderConfig{.src_vocab = sized("src_vocab", draw(random, {7, 11})),
                                          .tgt_vocab = sized("tgt_vocab", draw(random, {7, 13})),
                                          .d_model = sized("d_model", heads * per_head),
                                          .d_ff = sized("d_ff", draw(random, {9, 16})),
                                          .h = sized("h", heads),
                                          .layers = 1,
                                          .pre_norm = random() % 2 == 0,
                                          .activation = random() % 2 ? nn::Activation::relu : nn::Activation::gelu,
                                          .dropout = random() % 3 ? 0 : 0.2,
                                          .label_smoothing = random() % 2 ? 0 : 0.1,
                                          .dtype = dtype})
      .graph;
}

/// Returns a model with the output "loss", in this dtype throughout.
ir::Graph forward(unsigned model, Random& random, DType dtype) {
  const std::int64_t heads = draw(random, {1, 2, 4}), per_head = draw(random, {2, 4, 6});
  const Dim h = sized("h", heads), d = sized("d", heads * per_head);
  switch (model) {
    case 0: return gpt(random, dtype);
    case 1: return llama(random, dtype);
    case 2: return encoder_decoder(random, dtype);
    case 3:
      return attention("walkthrough", [&](lathe::Graph& g) {
        models::attention_walkthrough(g, {.vocab = sized("vocab", 7), .d_model = d, .h = h, .dtype = dtype});
      });
    case 4:
      return attention("llama_attention", [&](lathe::Graph& g) {
        models::llama_attention(g, {.hidden = sized("hidden", 4 * heads * per_head),
                                    .H = sized("H", 2 * heads),
                                    .KV = sized("KV", heads),
                                    .dropout = random() % 2 ? 0 : 0.2,
                                    .dtype = dtype == bf16 ? f32 : dtype});  // rope's complex type lacks bf16
      });
    case 5:
      return attention("einsum_attention", [&](lathe::Graph& g) {
        models::einsum_attention(g, {.embed = d, .heads = h, .dtype = dtype});
      });
    default:
      return attention("attention_forms", [&](lathe::Graph& g) {
        models::attention_forms(g, {.d = d, .h = h, .d_self = sized("d_self", 4), .dtype = dtype});
      });
  }
}

/// Returns sizes for all symbolic dims, small and odd, so that vectors and blocks have remainders.
DimBindings random_sizes(const ir::Graph& graph, Random& random) {
  DimBindings sizes;
  for (const ir::ValueId id : graph.arguments())
    for (const Dim& dim : graph[id].type.shape)
      for (const std::string& name : dim.unknowns())
        if (!sizes.contains(name))
          sizes[name] = name == "B" || name == "N" ? draw(random, {1, 2, 3}) : draw(random, {3, 5, 7, 9});
  return sizes;
}

/// Optimizers without discontinuities: a sign or an 8-bit code may differ where rounding errors do.
Optimizer random_optimizer(Random& random) {
  switch (random() % 5) {
    case 0: return SGD{.momentum = 0.9, .weight_decay = 0.01, .nesterov = random() % 2 == 0};
    case 1: return Adam{};
    case 2: return Adafactor{.weight_decay = 0.1};
    case 3: return ScheduleFreeAdamW{.weight_decay = 0.1};
    default: return AdamW{.lr = Schedule::warmup_cosine({.peak = 3e-4, .warmup = 10, .total = 100})};
  }
}

ir::Graph step(const ir::Graph& graph, Random& random, DType precision) {
  return training_step(graph, "loss", random_optimizer(random),
                       {.clip_norm = random() % 2 ? 0 : 1.0, .precision = precision});
}

ir::Graph with_gradients(const ir::Graph& graph, DType precision) {
  return ir::differentiate(precision == f32 ? graph : ir::mixed_precision(graph, precision),
                           {.outputs = {{"loss", ""}}, .unused = ir::Unused::zeros});
}

}  // namespace

Case model_case(unsigned seed) {
  constexpr unsigned models = 7;
  struct Kind {
    DType dtype, precision;  ///< of the graph; of its matmuls
    bool known;
  };
  static constexpr std::array<Kind, 8> kinds = {{{f32, f32, false},
                                                 {f64, f32, true},
                                                 {f32, bf16, false},
                                                 {f32, f32, true},
                                                 {f64, f32, false},
                                                 {bf16, f32, true},
                                                 {bf16, f32, false},
                                                 {f32, bf16, true}}};
  const bool listed = seed < model_cases;
  const Kind& kind = kinds[seed / models % (listed ? 6 : kinds.size())];
  Random random(seed);
  ir::Graph graph = forward(seed % models, random, kind.dtype);
  graph = listed || random() % 2 ? step(graph, random, kind.precision) : with_gradients(graph, kind.precision);
  DimBindings sizes = random_sizes(graph, random);
  if (kind.known) graph = ir::with_sizes(graph, sizes);
  return {seed, std::move(graph), {kind.known ? DimBindings() : sizes}, true};
}

}  // namespace lathe::fuzz
