#include "bench/cases/step_cases.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "frontend/models/loss_graph.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"

namespace lathe::bench {

namespace {

/// Tokens in a fixed pattern, starting at 1 because some models use 0 for padding.
HostTensor pattern(std::int64_t batch, std::int64_t length, std::int64_t vocab) {
  HostTensor tokens(i64, {batch, length});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, 1 + i * 7919 % (vocab - 1));
  return tokens;
}

/// Number of elements of all parameters except those named.
double count_parameters(const ir::Graph& graph, const std::vector<std::string>& without = {}) {
  double count = 0;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value != "parameter") continue;
    if (std::find(without.begin(), without.end(), node.name) != without.end()) continue;
    count += static_cast<double>(node.type.shape.numel().value().value_or(0));
  }
  return count;
}

/// A case without its inputs, FLOPs and description.
StepCase case_of(std::string_view name, models::LossGraph model,
                 std::vector<std::pair<std::string, std::int64_t>> sizes, std::int64_t tokens) {
  StepCase made;
  made.name = name;
  made.forward = std::move(model.graph);
  made.initializers = std::move(model.initializers);
  made.sizes = std::move(sizes);
  made.tokens = tokens;
  return made;
}

struct GptSizes {
  std::int64_t layers, d_model, heads, vocab, batch, sequence;
};

StepCase gpt(std::string_view name, const GptSizes& s, DType dtype) {
  models::GptConfig config = models::gpt2_config(static_cast<int>(s.layers), s.d_model, s.heads);
  config.vocab = Dim("vocab", s.vocab);
  config.dtype = dtype;
  config.context = Dim("context", std::max<std::int64_t>(s.sequence, 1024));
  StepCase made = case_of(name, models::loss_graph(config),
                          {{"layers", s.layers}, {"d_model", s.d_model}, {"heads", s.heads}}, s.batch * s.sequence);
  made.inputs.set("tokens", pattern(s.batch, s.sequence + 1, s.vocab));
  made.flops = static_cast<double>(made.tokens) *
               (6 * count_parameters(made.forward) + 6.0 * static_cast<double>(s.layers * s.d_model * s.sequence));
  made.what = fmt::format("GPT: {} layers, d={}, {} heads, vocab {}, B={} T={}", s.layers, s.d_model, s.heads,
                          s.vocab, s.batch, s.sequence);
  return made;
}

/// The base model of Vaswani et al. 2017, with post-norm as in the paper.
StepCase encoder_decoder(DType dtype) {
  constexpr std::int64_t layers = 6, d = 512, heads = 8, d_ff = 2048, vocab = 32000, batch = 8, length = 128;
  const models::EncoderDecoderConfig config{.src_vocab = Dim("src_vocab", vocab),
                                            .tgt_vocab = Dim("tgt_vocab", vocab),
                                            .d_model = Dim("d_model", d),
                                            .d_ff = Dim("d_ff", d_ff),
                                            .h = Dim("h", heads),
                                            .layers = static_cast<int>(layers),
                                            .pre_norm = false,
                                            .dtype = dtype};
  StepCase made = case_of("encoder-decoder", models::loss_graph(config),
                          {{"layers", layers}, {"d_model", d}, {"heads", heads}}, batch * length);
  made.inputs.set("src", pattern(batch, length, vocab));
  made.inputs.set("tgt", pattern(batch, length + 1, vocab));
  // A pair of source and target tokens uses every matrix once. Encoder and cross attention are not causal.
  made.flops =
      static_cast<double>(made.tokens) * (6 * count_parameters(made.forward, {"src_embedding", "tgt_embedding"}) +
                                          (12 + 6 + 12) * static_cast<double>(layers * d * length));
  made.what = fmt::format("encoder-decoder: {0}+{0} layers, d={1}, {2} heads, d_ff {3}, vocab {4}, B={5} S=T={6}",
                          layers, d, heads, d_ff, vocab, batch, length);
  return made;
}

/// One Llama block between a small embedding table and a small output layer.
StepCase llama_block(DType dtype) {
  constexpr std::int64_t d = 1024, heads = 16, kv_heads = 4, d_ff = 2816, vocab = 256, batch = 1, length = 512;
  const models::LlamaConfig config{.vocab = Dim("vocab", vocab),
                                   .d_model = Dim("d_model", d),
                                   .d_ff = Dim("d_ff", d_ff),
                                   .h = Dim("h", heads),
                                   .kv_heads = Dim("kv_heads", kv_heads),
                                   .head_dim = Dim("head_dim", d / heads),
                                   .layers = 1,
                                   .dtype = dtype};
  StepCase made = case_of("llama-block", models::loss_graph(config),
                          {{"layers", 1}, {"d_model", d}, {"heads", heads}, {"kv_heads", kv_heads}}, batch * length);
  made.inputs.set("tokens", pattern(batch, length + 1, vocab));
  made.flops = static_cast<double>(made.tokens) *
               (6 * count_parameters(made.forward, {"embed"}) + 6.0 * static_cast<double>(d * length));
  made.what = fmt::format("Llama block: d={}, {}/{} heads, SwiGLU {}, vocab {}, B={} T={}", d, heads, kv_heads, d_ff,
                          vocab, batch, length);
  return made;
}

/// Returns the numbers of "6x384x6", each at least 1; empty if the text has another form.
std::vector<std::int64_t> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const char *at = text.data(), *const end = at + text.size(); at <= end;) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || numbers.back() < 1 || (next != end && *next != 'x')) return {};
    at = next + 1;
  }
  return numbers;
}

}  // namespace

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> names = {"gpt2", "gpt2-1024", "encoder-decoder", "llama-block"};
  return names;
}

StepCase make_step_case(std::string_view name, DType dtype) {
  if (name == "gpt2") return gpt(name, {12, 768, 12, 50257, 4, 64}, dtype);
  if (name == "gpt2-1024") return gpt(name, {12, 768, 12, 50257, 1, 1024}, dtype);
  if (name == "encoder-decoder") return encoder_decoder(dtype);
  if (name == "llama-block") return llama_block(dtype);
  constexpr std::string_view decode = "decode-";
  const bool decodes = name.starts_with(decode);
  const std::vector<std::int64_t> sizes = numbers_of(decodes ? name.substr(decode.size()) : name);
  if (decodes && sizes.size() == 1) return gpt2_decode_case(sizes[0]);
  if (!decodes && sizes.size() == 6)
    return gpt(name, {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]}, dtype);
  throw UserError(fmt::format("there is no step '{}'", name), "bench_step",
                  fmt::format("{}, a GPT as LAYERSxD_MODELxHEADSxVOCABxBATCHxSEQUENCE, or decode-CONTEXT",
                              fmt::join(step_names(), ", ")));
}

}  // namespace lathe::bench
