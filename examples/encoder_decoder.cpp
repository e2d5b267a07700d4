// The encoder-decoder Transformer learns to copy, then decodes sequences it has never seen.
//
//   example_encoder_decoder [GOLDENS_FOLDER]

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "examples/check_goldens.h"
#include "frontend/decoding.h"
#include "frontend/initialize.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/step.h"
#include "ir/support/philox.h"

using namespace lathe;

namespace {

constexpr std::int64_t pad = 0, start = 1, first_word = 2, vocabulary = 13;
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

/// Sentence number `n` of a stream: 4 to 10 random words.
Sentence sentence(std::uint32_t stream, std::uint32_t n) {
  const std::uint32_t length = shortest + philox({n, 0, 0, 0}, {stream, 0})[0] % (longest - shortest + 1);
  Sentence words;
  for (std::uint32_t i = 0; i < length; ++i)
    words.push_back(first_word + philox({n, 1 + i, 0, 0}, {stream, 0})[0] % (vocabulary - first_word));
  return words;
}

/// Rows of one length, padded on the right; each behind `lead` where it is given.
HostTensor rows(const std::vector<Sentence>& sentences, std::optional<std::int64_t> lead) {
  std::size_t length = 0;
  for (const Sentence& s : sentences) length = std::max(length, s.size() + (lead ? 1 : 0));
  HostTensor batch(i64, {static_cast<std::int64_t>(sentences.size()), static_cast<std::int64_t>(length)});
  auto at = batch.as<std::int64_t>();
  std::fill(at.begin(), at.end(), pad);
  for (std::size_t row = 0; row < sentences.size(); ++row) {
    auto to = at.begin() + static_cast<std::ptrdiff_t>(row * length);
    if (lead) *to++ = *lead;
    std::copy(sentences[row].begin(), sentences[row].end(), to);
  }
  return batch;
}

ir::Tensors train(std::int64_t steps) {
  Graph g{"copy_task"};
  const models::EncoderDecoder model(g, config_with(0.0, 0.1));
  const Dim B{"nbatches"}, S{"n_seq_src"}, T{"n_seq_tgt"};
  const Tensor loss = model.loss(g.input("src", i64, {B, S}), g.input("tgt", i64, {B, T + 1}));
  const Adam optimizer{.lr = Schedule::noam(0.5, 64, 200), .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9};
  const auto initializers = g.initializers();
  const ir::Graph graph = training_step(g, loss, optimizer);
  Executable step = compile(graph);
  step.set_states(initial_values(graph, initializers, 1));
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<Sentence> batch;
    for (std::uint32_t row = 0; row < 32; ++row)
      batch.push_back(sentence(1, static_cast<std::uint32_t>(i) * 32 + row));
    const auto results = step.run({{"src", rows(batch, {})}, {"tgt", rows(batch, start)}});
    if (i == 0 || (i + 1) % (steps / 8) == 0)
      fmt::print("step {:5}  loss {:.4f}\n", i + 1, results.at("loss").get(0));
  }
  return step.states();
}

/// Decodes sentences of one length word by word.
class Translator {
 public:
  explicit Translator(const ir::Tensors& states) : forward_(build()) {
    for (const auto& [name, value] : states)
      if (!name.starts_with("optimizer.")) forward_.set_state(name, value);
  }

  std::vector<Sentence> translate(const std::vector<Sentence>& sources, const Sampling& sampling) {
    Sampler sampler(sampling, 3);
    std::vector<Sentence> targets(sources.size());
    for (std::size_t step = 0; step < sources.front().size(); ++step) {
      const auto logits = forward_.run({{"src", rows(sources, {})}, {"tgt", rows(targets, start)}}).at("logits");
      const auto length = static_cast<std::int64_t>(step) + 1;  // logits: [B, length, vocabulary]
      for (std::size_t row = 0; row < targets.size(); ++row)
        targets[row].push_back(
            sampler.next(logits_row(logits, static_cast<std::int64_t>(row) * length + length - 1)));
    }
    return targets;
  }

 private:
  static Executable build() {
    Graph g{"copy_task_logits"};
    const models::EncoderDecoder model(g, config_with(0, 0));
    const Dim B{"nbatches"}, S{"n_seq_src"}, T{"n_seq_tgt"};
    g.output("logits", model.logits(g.input("src", i64, {B, S}), g.input("tgt", i64, {B, T})));
    return compile(g.finish());
  }
  Executable forward_;
};

/// The share of sentences of a stream that training never saw and that come out as they went in.
double held_out_accuracy(Translator& translator, std::uint32_t count) {
  std::map<std::size_t, std::vector<Sentence>> by_length;
  for (std::uint32_t n = 0; n < count; ++n) {
    const Sentence s = sentence(2, n);
    by_length[s.size()].push_back(s);
  }
  std::size_t exact = 0;
  for (const auto& [length, sources] : by_length) {
    const auto targets = translator.translate(sources, {.temperature = 0});
    for (std::size_t i = 0; i < sources.size(); ++i) exact += sources[i] == targets[i];
  }
  return static_cast<double>(exact) / count;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    Translator translator(train(1600));
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
