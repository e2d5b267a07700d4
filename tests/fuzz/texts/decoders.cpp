#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "models/generation/cached_lm.h"
#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/families.h"
#include "models/pretrained/token_loss.h"
#include "models/text/dataset/token_batches.h"
#include "tests/fuzz/texts/text_runs.h"

namespace lathe::fuzz {

namespace {

std::unique_ptr<pretrained::CausalLm> decoder_of(const RandomModel& made) {
  using namespace pretrained;
  const auto describe = std::get<DescribeCausalLm>(family_of(made).make);
  return std::make_unique<CausalLm>(describe(config_of(made)));
}

/// Computes logits [1, T, vocab] in one pass over a single text, once per text.
class DecoderAlone {
 public:
  DecoderAlone(const pretrained::CausalLm& model, const Parameters& weights)
      : graph_(graph(model)), weights_(weights), compiled_(graph_, weights, true) {}

  const HostTensor& logits(const Ids& text) {
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    return known_.emplace(text, compiled_.run({{"ids", ids_tensor(text)}}).at("logits")).first->second;
  }

  /// Checks the same with the interpreter, which shares neither code nor memory with the compiled model.
  Complaint check(const Ids& text) {
    const HostTensor want = TextGraph(graph_, weights_, false).run({{"ids", ids_tensor(text)}}).at("logits");
    const Complaint wrong = differing_rows(logits(text), 0, want, std::ssize(text));
    return wrong ? Complaint("alone, compiled against interpreted: " + *wrong) : std::nullopt;
  }

 private:
  static ir::Graph graph(const pretrained::CausalLm& model) {
    lathe::Graph g("alone");
    g.output("logits", model.logits({.ids = g.input("ids", i64, {Dim(1), Dim("T")}), .dtype = f64}));
    return g.finish();
  }

  ir::Graph graph_;
  Parameters weights_;
  TextGraph compiled_;
  std::map<Ids, HostTensor> known_;
};

struct DecoderCase {
  const RandomModel& made;
  std::unique_ptr<pretrained::CausalLm> model;
  Parameters weights;
  std::vector<Ids> texts;
  std::mt19937& random;
  DecoderAlone alone;
};

/// Inputs that describe the padding of a batch.
struct PaddingForm {
  const char* name;
  bool is_left, mask, positions, lengths;
};
constexpr std::array padding_forms{PaddingForm{"padded on the right, mask", false, true, false, false},
                                   PaddingForm{"padded on the right, mask and positions", false, true, true, false},
                                   PaddingForm{"padded on the right, lengths", false, false, false, true},
                                   PaddingForm{"padded on the left, mask and positions", true, true, true, false},
                                   PaddingForm{"padded on the left, mask", true, true, false, false}};

Complaint check_padded(DecoderCase& c) {
  const std::size_t usable = padding_forms.size() - (c.made.shifts ? 0 : 1);
  const PaddingForm& form = padding_forms[c.random() % usable];
  const PaddedTexts batch = padded_texts(c.texts, form.is_left, std::nullopt, c.made.vocab, c.random);
  lathe::Graph g("padded");
  Tensors values{{"ids", batch.ids}};
  const Shape shape{Dim("B"), Dim("T")};
  const auto take = [&](bool wanted, const char* name, const HostTensor& value, const Shape& of) {
    if (!wanted) return std::optional<Tensor>();
    values.emplace(name, value);
    return std::optional(g.input(name, i64, of));
  };
  pretrained::TokenInputs inputs{.ids = g.input("ids", i64, shape), .dtype = f64};
  inputs.mask = take(form.mask, "mask", batch.mask, shape);
  inputs.positions = take(form.positions, "positions", batch.positions, shape);
  inputs.lengths = take(form.lengths && c.model->depends_on_length(), "lengths", batch.lengths, {Dim("B")});
  g.output("logits", c.model->logits(inputs));
  const HostTensor got = TextGraph(g.finish(), c.weights, one_in(c.random, 2)).run(values).at("logits");
  const std::int64_t T = batch.ids.shape()[1];
  for (std::size_t b = 0; b < c.texts.size(); ++b)
    if (const Complaint wrong = differing_rows(got, static_cast<std::int64_t>(b) * T + batch.starts[b],
                                               c.alone.logits(c.texts[b]), std::ssize(c.texts[b])))
      return fmt::format("{}: text {} of {}: {}", form.name, b, sizes_text(c.texts), *wrong);
  return std::nullopt;
}

/// All texts in one or two packed rows, with gaps between them.
Complaint check_packed(DecoderCase& c) {
  const std::int64_t B = 1 + static_cast<std::int64_t>(c.random() % 2);
  std::vector<std::int64_t> ends(static_cast<std::size_t>(B)), starts;
  std::vector<std::size_t> rows;
  for (const Ids& text : c.texts) {
    rows.push_back(c.random() % ends.size());
    ends[rows.back()] += static_cast<std::int64_t>(c.random() % 3);
    starts.push_back(ends[rows.back()]);
    ends[rows.back()] += std::ssize(text);
  }
  const std::int64_t T = *std::max_element(ends.begin(), ends.end()) + 1;
  HostTensor ids(i64, {B, T}), positions(i64, {B, T}), segments(i64, {B, T}), mask(i64, {B, T});
  for (std::size_t i = 0; i < c.texts.size(); ++i)
    for (std::int64_t t = 0; t < std::ssize(c.texts[i]); ++t) {
      const std::int64_t at = static_cast<std::int64_t>(rows[i]) * T + starts[i] + t;
      ids.set_int(at, c.texts[i][static_cast<std::size_t>(t)]);
      positions.set_int(at, t);
      segments.set_int(at, static_cast<std::int64_t>(i) + 1);
      mask.set_int(at, 1);
    }
  lathe::Graph g("packed");
  const Shape shape{Dim("B"), Dim("T")};
  Tensors values{{"ids", ids}, {"segments", segments}};
  pretrained::TokenInputs inputs{
      .ids = g.input("ids", i64, shape), .dtype = f64, .segments = g.input("segments", i64, shape)};
  if (!c.made.shifts || one_in(c.random, 2)) {
    inputs.positions = g.input("positions", i64, shape);
    values.emplace("positions", positions);
  }
  if (one_in(c.random, 2)) {
    inputs.mask = g.input("mask", i64, shape);
    values.emplace("mask", mask);
  }
  g.output("logits", c.model->logits(inputs));
  const HostTensor got = TextGraph(g.finish(), c.weights, one_in(c.random, 2)).run(values).at("logits");
  for (std::size_t i = 0; i < c.texts.size(); ++i)
    if (const Complaint wrong = differing_rows(got, static_cast<std::int64_t>(rows[i]) * T + starts[i],
                                               c.alone.logits(c.texts[i]), std::ssize(c.texts[i])))
      return fmt::format("packed{}{}: text {} of {}: {}", inputs.positions ? " with positions" : "",
                         inputs.mask ? " with a mask" : "", i, sizes_text(c.texts), *wrong);
  return std::nullopt;
}

double loss_of_token(const HostTensor& logits, std::int64_t row, std::int64_t token) {
  const std::int64_t n = logits.shape().back();
  double largest = logits.get(row * n), sum = 0;
  for (std::int64_t i = 1; i < n; ++i) largest = std::max(largest, logits.get(row * n + i));
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(logits.get(row * n + i) - largest);
  return largest + std::log(sum) - logits.get(row * n + token);
}

/// The mean loss of all texts in batches of TokenBatches, padded or packed.
Complaint check_loss(DecoderCase& c) {
  std::vector<Example> examples;
  double want = 0;
  std::int64_t labels = 0, longest = 0;
  for (const Ids& text : c.texts) {
    if (text.size() < 2) continue;
    Example& example = examples.emplace_back();
    for (std::size_t t = 0; t < text.size(); ++t) {
      example.ids.push_back(static_cast<TokenId>(text[t]));
      example.learned.push_back(t > 0 && (t + 1 == text.size() || !one_in(c.random, 3)));
      if (!example.learned.back()) continue;
      want += loss_of_token(c.alone.logits(text), static_cast<std::int64_t>(t) - 1, text[t]);
      ++labels;
    }
    longest = std::max(longest, example.size());
  }
  if (examples.empty()) return std::nullopt;
  want /= static_cast<double>(labels);
  BatchOptions options{.context = longest + static_cast<std::int64_t>(c.random() % 8),
                       .batch = pick(c.random, {1, 2, 3}),
                       .pack = one_in(c.random, 2),
                       .lengths = c.model->depends_on_length()};
  const TokenBatches batches(examples, options);
  const lathe::Graph g = token_loss(*c.model, "loss", Dim("B"), Dim("T"), options.pack, f64);
  TextGraph graph(g.finish(), c.weights, one_in(c.random, 2));
  double got = 0;
  for (std::int64_t i = 0; i < batches.evaluation_batches(); ++i)
    got += graph.run(batches.evaluation(i, batches.evaluation_batches())).at("loss").get(0);
  got /= static_cast<double>(batches.evaluation_batches());
  if (std::abs(got - want) <= 1e-10 * std::abs(want)) return std::nullopt;
  return fmt::format("the loss of texts of {} tokens is {}, not {}: batches of {}{}", sizes_text(c.texts), got, want,
                     options.batch, options.pack ? ", packed" : "");
}

/// Some of the texts, from prompts of any length to their ends.
Complaint check_continued(DecoderCase& c, CachedLm& lm, const std::vector<Ids>& texts) {
  std::vector<Ids> now;
  for (const Ids& text : texts)
    now.emplace_back(text.begin(), text.begin() + 1 + static_cast<std::ptrdiff_t>(c.random() % text.size()));
  const std::vector<Ids> prompts = now;
  lm.start(prompts);
  std::vector<bool> done(texts.size());
  for (bool goes_on = true; goes_on;) {
    for (std::size_t b = 0; b < texts.size(); ++b) {
      if (done[b]) continue;
      const HostTensor& want = c.alone.logits(now[b]);
      if (const Complaint wrong =
              differing_row(lm.logits(), static_cast<std::int64_t>(b), want, std::ssize(now[b]) - 1))
        return fmt::format("after {} tokens of text {}, the prompts had {}: {}", now[b].size(), b,
                           sizes_text(prompts), *wrong);
    }
    goes_on = false;
    Ids tokens;
    for (std::size_t b = 0; b < texts.size(); ++b) {
      done[b] = now[b].size() == texts[b].size();
      tokens.push_back(done[b] ? 3 : texts[b][now[b].size()]);
      if (!done[b]) now[b].push_back(tokens.back());
      goes_on = goes_on || !done[b];
    }
    if (goes_on) lm.step(tokens, done);
  }
  return std::nullopt;
}

/// One CachedLm for batches of several sizes in sequence, and sometimes for a text that outgrows its cache.
Complaint check_cached(DecoderCase& c) {
  const bool is_long = c.made.shifts && one_in(c.random, 12);
  const std::int64_t chunk = is_long ? pick(c.random, {100, 512}) : pick(c.random, {1, 2, 3, 5, 8, 512});
  CachedLm lm(*c.model, c.weights, {.dtype = f64, .chunk = chunk, .threads = 1, .cache = &compiled_kernels()});
  for (int round = 0; round < 2; ++round) {
    std::vector<Ids> texts;
    for (std::int64_t i = is_long ? 1 : pick(c.random, {1, 2, 3, 5}); i > 0; --i)
      texts.push_back(c.texts[c.random() % c.texts.size()]);
    while (is_long && texts[0].size() < 270)
      texts[0].push_back(3 + c.random() % static_cast<unsigned>(c.made.vocab - 3));
    if (const Complaint wrong = check_continued(c, lm, texts))
      return fmt::format("cached, chunks of {}, batch {} of {}: {}", chunk, round, sizes_text(texts), *wrong);
  }
  return std::nullopt;
}

/// Compares beams found with a cache to those found with passes over each text on its own.
Complaint check_beams(DecoderCase& c) {
  const BeamOptions options{.width = pick(c.random, {1, 2, 3, 5}), .results = 1, .longest = c.made.turn + 2};
  const Ids& text = c.texts[0];
  const Ids prompt(text.begin(), text.begin() + 1 + static_cast<std::ptrdiff_t>(c.random() % text.size()));
  CachedLm lm(*c.model, c.weights,
              {.dtype = f64, .chunk = pick(c.random, {1, 3, 512}), .threads = 1, .cache = &compiled_kernels()});
  const Beam got = lm.beams(prompt, options)[0];
  const Beam want = beam_search(prompt, options, [&](auto sequences, auto) {
    std::vector<std::vector<double>> rows;
    for (const Ids& sequence : sequences) {
      const HostTensor& logits = c.alone.logits(sequence);
      std::vector<double>& row = rows.emplace_back();
      for (std::int64_t i = logits.numel() - c.made.vocab; i < logits.numel(); ++i) row.push_back(logits.get(i));
    }
    return rows;
  })[0];
  if (got.tokens == want.tokens && std::abs(got.score - want.score) <= 1e-10 * std::max(1.0, std::abs(want.score)))
    return std::nullopt;
  return fmt::format("{} beams after {} of {} tokens: {} with the score {}, not {} with {}", options.width,
                     prompt.size(), text.size(), fmt::join(got.tokens, " "), got.score, fmt::join(want.tokens, " "),
                     want.score);
}

}  // namespace

Complaint check_decoder(const RandomModel& made, std::mt19937& random) {
  auto model = decoder_of(made);
  const Parameters weights = random_weights(*model, random);
  std::vector<Ids> texts = random_texts(made, 4, random);
  DecoderAlone alone(*model, weights);
  DecoderCase c{made, std::move(model), weights, std::move(texts), random, std::move(alone)};
  if (const Complaint wrong = c.alone.check(c.texts[0])) return wrong;
  for (const auto check : {check_cached, check_padded, check_packed, check_loss, check_beams}) {
    if (check != check_cached && one_in(random, 2)) continue;
    if (const Complaint wrong = check(c)) return wrong;
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
