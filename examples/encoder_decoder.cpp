// The encoder-decoder Transformer learns to copy, then decodes sequences it has never seen.
//
//   example_encoder_decoder [GOLDENS_FOLDER]

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "examples/check_goldens.h"
#include "frontend/decode/decoding.h"
#include "frontend/initial_values.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/train/step.h"
#include "ir/support/numbers/philox.h"

using namespace lathe;

namespace {

constexpr std::int64_t pad = 0, start = 1, end = 2, first_word = 3, vocabulary = 14;
constexpr std::uint32_t shortest = 4, longest = 10;
using Sentence = std::vector<std::int64_t>;

models::EncoderDecoderConfig config_with(double dropout, double smoothing) {
  return {.src_vocab = Dim("src_vocab", vocabulary),
          .tgt_vocab = Dim("tgt_vocab", vocabulary),
          .d_model = Dim("d_model", 64),
          .d_ff = Dim("d_ff", 128),
          .h = Dim("h", 4),
          .layers = 2,
          .pad = pad,
          .dropout = dropout,
          .label_smoothing = smoothing};
}

/// Returns sentence number `n` of a stream: 4 to 10 random words.
Sentence sentence(std::uint32_t stream, std::uint32_t n) {
  const std::uint32_t length = shortest + philox({n, 0, 0, 0}, {stream, 0})[0] % (longest - shortest + 1);
  Sentence words;
  for (std::uint32_t i = 0; i < length; ++i)
    words.push_back(first_word + philox({n, 1 + i, 0, 0}, {stream, 0})[0] % (vocabulary - first_word));
  return words;
}

/// Returns rows of equal length, padded on the right.
HostTensor rows(const std::vector<Sentence>& sentences) {
  std::size_t length = 0;
  for (const Sentence& s : sentences) length = std::max(length, s.size());
  HostTensor batch(i64, {static_cast<std::int64_t>(sentences.size()), static_cast<std::int64_t>(length)});
  auto at = batch.as<std::int64_t>();
  std::fill(at.begin(), at.end(), pad);
  for (std::size_t row = 0; row < sentences.size(); ++row)
    std::copy(sentences[row].begin(), sentences[row].end(), at.begin() + static_cast<std::ptrdiff_t>(row * length));
  return batch;
}

/// Returns the tokens that the decoder reads and predicts: start, the words, end.
Sentence framed(const Sentence& words) {
  Sentence target{start};
  target.insert(target.end(), words.begin(), words.end());
  target.push_back(end);
  return target;
}

Parameters train(std::int64_t steps) {
  Graph g{"copy_task"};
  const models::EncoderDecoder model(g, config_with(0.1, 0.1));
  const Dim B{"nbatches"}, S{"n_seq_src"}, T{"n_seq_tgt"};
  const Tensor loss = model.loss(g.input("src", i64, {B, S}), g.input("tgt", i64, {B, T + 1}));
  const Adam optimizer{
      .lr = Schedule::noam({.factor = 0.5, .d_model = 64, .warmup = 200}), .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9};
  const auto initializers = g.initializers();
  const ir::Graph graph = training_step(g, loss, optimizer);
  Executable step = compile(graph);
  step.parameters().set(initial_values(graph, initializers, 1));
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<Sentence> sources, targets;
    for (std::uint32_t row = 0; row < 32; ++row) {
      sources.push_back(sentence(1, static_cast<std::uint32_t>(i) * 32 + row));
      targets.push_back(framed(sources.back()));
    }
    const auto results = step.run({{"src", rows(sources)}, {"tgt", rows(targets)}});
    if (i == 0 || (i + 1) % (steps / 8) == 0)
      fmt::print("step {:5}  loss {:.4f}\n", i + 1, results.at("loss").item());
  }
  return step.parameters();
}

/// Decodes sentences one word at a time until each has ended.
class Translator {
 public:
  explicit Translator(const Parameters& trained) : forward_(build(trained)) {}

  std::vector<Sentence> translate(const std::vector<Sentence>& sources, const Sampling& sampling) {
    Sampler sampler(sampling, 3);
    std::vector<Sentence> targets(sources.size(), Sentence{start});
    std::vector<bool> ended(sources.size(), false);
    for (std::int64_t length = 1; length <= longest + 2 && !all(ended); ++length) {
      const auto logits = forward_.run({{"src", rows(sources)}, {"tgt", rows(targets)}}).at("logits");
      for (std::size_t row = 0; row < targets.size(); ++row) {  // logits: [B, length, vocabulary]
        const auto last = logits_row(logits, static_cast<std::int64_t>(row) * length + length - 1);
        targets[row].push_back(ended[row] ? pad : sampler.next(last));
        ended[row] = ended[row] || targets[row].back() == end;
      }
    }
    for (Sentence& target : targets) target = words_of(target);
    return targets;
  }

 private:
  static Executable build(const Parameters& trained) {
    Graph g{"copy_task_logits"};
    const models::EncoderDecoder model(g, config_with(0, 0));
    const Dim B{"nbatches"}, S{"n_seq_src"}, T{"n_seq_tgt"};
    g.output("logits", model.logits(g.input("src", i64, {B, S}), g.input("tgt", i64, {B, T})));
    return compile(g.finish(), {.parameters = trained});
  }
  static bool all(const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), false) == flags.end();
  }
  /// Returns the words between start and end.
  static Sentence words_of(const Sentence& target) {
    return {target.begin() + 1, std::find(target.begin() + 1, target.end(), end)};
  }
  Executable forward_;
};

/// Returns the fraction of sentences, from a stream not used for training, that are copied correctly.
double held_out_accuracy(Translator& translator, std::uint32_t count) {
  std::vector<Sentence> sources;
  for (std::uint32_t n = 0; n < count; ++n) sources.push_back(sentence(2, n));
  const auto targets = translator.translate(sources, {.temperature = 0});
  std::size_t exact = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) exact += sources[i] == targets[i];
  return static_cast<double>(exact) / count;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    Translator translator(train(2000));
    const Sentence source = sentence(2, 1);
    fmt::print("\n{:12} {}\n", "source", source);
    for (const auto& [name, sampling] :
         {std::pair{"greedy", Sampling{.temperature = 0}}, std::pair{"top-k 3", Sampling{.top_k = 3}},
          std::pair{"nucleus 0.9", Sampling{.top_p = 0.9}}, std::pair{"hot", Sampling{.temperature = 2}}})
      fmt::print("{:12} {}\n", name, translator.translate({source}, sampling).front());
    const double accuracy = held_out_accuracy(translator, 500);
    fmt::print("{:.1f}% of 500 held-out sentences are copied exactly\n", 100 * accuracy);
    const bool agrees = argc < 2 || examples::check_goldens(
                                        argv[1], {"encoder_decoder_pre_relu", "encoder_decoder_post_gelu",
                                                  "encoder_decoder_pre_relu_smooth", "encoder_decoder_post_relu_dv"});
    return agrees && accuracy >= 0.99;
  });
}
