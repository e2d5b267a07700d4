#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/generation/cached_seq2seq.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/encoders/encoder_options.h"
#include "models/pretrained/families.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "tests/fuzz/texts/text_runs.h"

namespace lathe::fuzz {

namespace {

pretrained::EncoderOptions encoder_options(const RandomModel& made) {
  pretrained::EncoderOptions options = std::get<pretrained::DescribeEncoder>(family_of(made).make)(config_of(made));
  options.pooler.clear();
  return options;
}

ir::Graph encoder_graph(const pretrained::Encoder& model, bool is_masked) {
  lathe::Graph g("encoder");
  const Shape shape{Dim("B"), Dim("T")};
  pretrained::EncoderInputs inputs{.ids = g.input("ids", i64, shape), .dtype = f64};
  if (is_masked) inputs.mask = g.input("mask", i64, shape);
  g.output("logits", model.logits(inputs));
  return g.finish();
}

ir::Graph seq2seq_graph(const pretrained::Seq2SeqLm& model, bool is_masked) {
  lathe::Graph g("seq2seq");
  const Dim B("B"), S("S"), T("T");
  pretrained::Seq2SeqInputs inputs{
      .ids = g.input("ids", i64, {B, S}), .decoder_ids = g.input("decoder_ids", i64, {B, T}), .dtype = f64};
  if (is_masked) {
    inputs.mask = g.input("mask", i64, {B, S});
    inputs.decoder_mask = g.input("decoder_mask", i64, {B, T});
  }
  g.output("logits", model.logits(inputs));
  return g.finish();
}

struct Seq2SeqCase {
  const pretrained::Seq2SeqLm& model;
  const Parameters& weights;
  std::int64_t vocab;
  std::vector<Ids> sources, texts;  ///< of the encoder; of the decoder, including its start token
  std::mt19937& random;
  TextGraph alone;

  HostTensor logits(std::size_t source, const Ids& text) {
    return alone.run({{"ids", ids_tensor(sources[source])}, {"decoder_ids", ids_tensor(text)}}).at("logits");
  }
};

Complaint check_seq2seq_batch(Seq2SeqCase& c) {
  const PaddedTexts sources = padded_texts(c.sources, false, std::nullopt, c.vocab, c.random),
                    texts = padded_texts(c.texts, false, std::nullopt, c.vocab, c.random);
  TextGraph graph(seq2seq_graph(c.model, true), c.weights, one_in(c.random, 2));
  const HostTensor got = graph
                             .run({{"ids", sources.ids},
                                   {"mask", sources.mask},
                                   {"decoder_ids", texts.ids},
                                   {"decoder_mask", texts.mask}})
                             .at("logits");
  for (std::size_t b = 0; b < c.texts.size(); ++b)
    if (const Complaint wrong = differing_rows(got, static_cast<std::int64_t>(b) * texts.ids.shape()[1],
                                               c.logits(b, c.texts[b]), std::ssize(c.texts[b])))
      return fmt::format("sources of {}, text {} of {}: {}", sizes_text(c.sources), b, sizes_text(c.texts), *wrong);
  return std::nullopt;
}

Complaint check_seq2seq_steps(Seq2SeqCase& c, CachedSeq2Seq& cached, std::size_t count) {
  const std::span<const Ids> sources(c.sources.data(), count);
  cached.start(sources);
  std::size_t longest = 0;
  for (std::size_t b = 0; b < count; ++b) longest = std::max(longest, c.texts[b].size());
  for (std::size_t t = 1;; ++t) {
    Ids tokens;
    std::vector<bool> done;
    for (std::size_t b = 0; b < count; ++b) {
      const Ids& text = c.texts[b];
      if (t <= text.size()) {
        const Ids now(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(t));
        if (const Complaint wrong = differing_row(cached.logits(), static_cast<std::int64_t>(b), c.logits(b, now),
                                                  static_cast<std::int64_t>(t) - 1))
          return fmt::format("cached, {} sources of {}: after {} tokens of text {}: {}", count, sizes_text(c.sources),
                             t, b, *wrong);
      }
      done.push_back(t >= text.size());
      tokens.push_back(done.back() ? 0 : text[t]);
    }
    if (t >= longest) return std::nullopt;
    cached.step(tokens, done);
  }
}

/// The score of a beam must be the mean of its tokens' log-probabilities in one pass.
Complaint check_seq2seq_beams(Seq2SeqCase& c, CachedSeq2Seq& cached) {
  for (const Beam& beam : cached.beams(c.sources[0], {.width = 3, .results = 3, .longest = 8})) {
    const Ids before(beam.tokens.begin(), beam.tokens.end() - 1);
    const HostTensor logits = c.logits(0, before);
    const std::int64_t n = logits.shape().back();
    double score = 0;
    for (std::size_t t = 1; t < beam.tokens.size(); ++t) {
      const auto row = static_cast<std::int64_t>(t - 1) * n;
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += std::exp(logits.get(row + i) - logits.get(row));
      score += logits.get(row + beam.tokens[t]) - logits.get(row) - std::log(sum);
    }
    score /= static_cast<double>(before.size());
    if (!(std::abs(score - beam.score) <= 1e-10 * std::max(1.0, std::abs(score))))
      return fmt::format("a beam's score is {}, not {}", beam.score, score);
  }
  return std::nullopt;
}

}  // namespace

Complaint check_encoder(const RandomModel& made, std::mt19937& random) {
  const pretrained::EncoderOptions options = encoder_options(made);
  const pretrained::Encoder model(options);
  const Parameters weights = random_weights(model, random);
  const std::vector<Ids> texts = random_texts(made, 4, random);
  const bool is_left = made.shifts && one_in(random, 2);
  // RoBERTa does not count its padding id as a position; the others allow any id.
  const auto padding = made.shifts ? options.padding : std::nullopt;
  const PaddedTexts batch = padded_texts(texts, is_left, padding, made.vocab, random);
  TextGraph alone(encoder_graph(model, false), weights, true),
      padded(encoder_graph(model, true), weights, one_in(random, 2));
  const HostTensor got = padded.run({{"ids", batch.ids}, {"mask", batch.mask}}).at("logits");
  const std::int64_t T = batch.ids.shape()[1];
  for (std::size_t b = 0; b < texts.size(); ++b) {
    const HostTensor want = alone.run({{"ids", ids_tensor(texts[b])}}).at("logits");
    if (const Complaint wrong =
            differing_rows(got, static_cast<std::int64_t>(b) * T + batch.starts[b], want, std::ssize(texts[b])))
      return fmt::format("padded on the {}: text {} of {}: {}", is_left ? "left" : "right", b, sizes_text(texts),
                         *wrong);
  }
  return std::nullopt;
}

Complaint check_encoder_decoder(const RandomModel& made, std::mt19937& random) {
  const auto make = std::get<pretrained::MakeSeq2SeqLm>(family_of(made).make);
  const auto model = make(config_of(made), [](const std::string&, const std::string&) { return false; });
  const Parameters weights = random_weights(*model, random);
  std::vector<Ids> sources = random_texts(made, 3, random), texts = random_texts(made, 3, random);
  for (Ids& text : texts) text.insert(text.begin(), model->start_token());
  Seq2SeqCase c{*model,
                weights,
                made.vocab,
                std::move(sources),
                std::move(texts),
                random,
                {seq2seq_graph(*model, false), weights, true}};
  if (const Complaint wrong = check_seq2seq_batch(c)) return wrong;
  CachedSeq2Seq cached(*model, weights, {.dtype = f64, .threads = 1, .cache = &compiled_kernels()});
  for (const std::size_t count : {std::size_t{1} + random() % 3, std::size_t{1} + random() % 3})
    if (const Complaint wrong = check_seq2seq_steps(c, cached, count)) return wrong;
  return check_seq2seq_beams(c, cached);
}

}  // namespace lathe::fuzz
