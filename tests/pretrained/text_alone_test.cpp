#include <algorithm>
#include <catch2/catch.hpp>

#include "frontend/decode/decoding.h"
#include "models/generation/cached_lm.h"
#include "tests/pretrained/cases/continuations.h"
#include "tests/pretrained/cases/token_case.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"

/// Models whose rotary angles of all tokens depend on the text length: results depend only on the text itself. `fuzz
/// --texts` checks the same for random models of all families.
using namespace lathe;
using Ids = std::vector<std::int64_t>;

namespace {

pretrained::Pretrained model_of(const std::string& name) {
  return pretrained::load_pretrained<pretrained::CausalLm>(test::test_data("hf/models") / name / "model");
}

/// All change at 12 tokens: phi3 switches to other factors, llama changes at each token from there on.
const std::vector<std::string> models{"phi3_longrope", "phi3_longrope_window", "llama_rope_dynamic"};

Ids text_of(std::int64_t size, std::int64_t number) {
  Ids ids;
  for (std::int64_t i = 0; i < size; ++i) ids.push_back((i * 37 + number * 11) % 100 + 3);
  return ids;
}

/// Returns the logits [vocab] of the token after a text that is read on its own, in one run.
HostTensor alone(const pretrained::Pretrained& loaded, const Ids& text) {
  CachedLm lm(*loaded.model, loaded.weights, {.dtype = f64, .cache = test::shared_kernels()});
  return test::row_of(lm.start({&text, 1}), 0);
}

/// Checks texts in one batch, from `prompts` tokens up to the lengths in `sizes`.
void check_batch(const pretrained::Pretrained& loaded, CachedLm& lm, const std::vector<std::int64_t>& prompts,
                 const std::vector<std::int64_t>& sizes) {
  std::vector<Ids> now;
  for (std::size_t b = 0; b < prompts.size(); ++b) now.push_back(text_of(prompts[b], static_cast<std::int64_t>(b)));
  lm.start(now);
  std::vector<bool> done(now.size());
  while (std::count(done.begin(), done.end(), false) > 0) {
    Ids tokens;
    for (std::size_t b = 0; b < now.size(); ++b) {
      const auto number = static_cast<std::int64_t>(b), size = std::ssize(now[b]);
      INFO("text " << b << " of " << now.size() << ", " << size << " tokens");
      if (!done[b]) CHECK(test::error_of(test::row_of(lm.logits(), number), alone(loaded, now[b])) <= 1e-10);
      done[b] = size == sizes[b];
      if (!done[b]) now[b] = text_of(size + 1, number);
      tokens.push_back(now[b].back());
    }
    if (std::count(done.begin(), done.end(), false) > 0) lm.step(tokens, done);
  }
}

}  // namespace

TEST_CASE("text alone: cached steps past the original length, in batches of all sizes, with one cache") {
  for (const std::string& name : models) {
    INFO(name);
    const pretrained::Pretrained loaded = model_of(name);
    for (const std::int64_t chunk : {512, 4}) {
      INFO("chunks of " << chunk);
      CachedLm lm(*loaded.model, loaded.weights, {.dtype = f64, .chunk = chunk, .cache = test::shared_kernels()});
      check_batch(loaded, lm, {9}, {15});
      check_batch(loaded, lm, {20, 5, 11}, {22, 14, 13});
      check_batch(loaded, lm, {3, 12, 10, 1, 14, 12}, {4, 14, 12, 2, 15, 13});
      check_batch(loaded, lm, {12}, {14});
    }
  }
}

TEST_CASE("text alone: a batch gives each text the logits of its own row") {
  // Texts of 5, 12 and 20 tokens: left-padded with a mask, right-padded with lengths, and in one row as segments.
  const std::vector<Ids> texts{text_of(5, 0), text_of(12, 1), text_of(20, 2)};
  const std::int64_t B = 3, T = 20;
  HostTensor left(i64, {B, T}), mask(i64, {B, T}), right(i64, {B, T}), lengths(i64, {B});
  HostTensor row(i64, {1, 40}), segments(i64, {1, 40}), positions(i64, {1, 40});
  std::int64_t end = 0;
  std::vector<std::int64_t> ends;
  for (std::int64_t b = 0; b < B; ++b) {
    const Ids& text = texts[static_cast<std::size_t>(b)];
    lengths.set_int(b, std::ssize(text));
    for (std::int64_t t = 0; t < std::ssize(text); ++t) {
      const std::int64_t id = text[static_cast<std::size_t>(t)];
      right.set_int(b * T + t, id);
      left.set_int((b + 1) * T - std::ssize(text) + t, id);
      mask.set_int((b + 1) * T - std::ssize(text) + t, 1);
      row.set_int(end, id);
      segments.set_int(end, b + 1);
      positions.set_int(end++, t);
    }
    ends.push_back(end - 1);
  }
  for (const std::string& name : models) {
    INFO(name);
    const pretrained::Pretrained loaded = model_of(name);
    Graph g("batches");
    const Shape shape{Dim("B"), Dim("T")}, one{Dim(1), Dim("R")};
    const auto in = [&](const char* input, const Shape& of) { return g.input(input, i64, of); };
    g.output("left", loaded.model->logits({.ids = in("left", shape), .mask = in("mask", shape), .dtype = f64}));
    g.output("right",
             loaded.model->logits({.ids = in("right", shape), .dtype = f64, .lengths = in("lengths", {Dim("B")})}));
    const Tensor ids = in("row", one), numbers = in("segments", one);
    g.output("packed", loaded.model->logits(
                           {.ids = ids, .positions = in("positions", one), .dtype = f64, .segments = numbers}));
    g.output("counted", loaded.model->logits({.ids = ids, .dtype = f64, .segments = numbers}));
    const Tensors got = compile(g.finish(), {.parameters = loaded.weights, .cache = test::shared_kernels()})
                            .run({{"left", left},
                                  {"mask", mask},
                                  {"right", right},
                                  {"lengths", lengths},
                                  {"row", row},
                                  {"segments", segments},
                                  {"positions", positions}});
    for (std::int64_t b = 0; b < B; ++b) {
      const Ids& text = texts[static_cast<std::size_t>(b)];
      INFO("text " << b);
      const HostTensor want = alone(loaded, text);
      const auto error = [&](const char* output, std::int64_t at) {
        return test::error_of(test::row_of(got.at(output), at), want);
      };
      CHECK(error("left", (b + 1) * T - 1) <= 1e-10);
      CHECK(error("right", b * T + std::ssize(text) - 1) <= 1e-10);
      CHECK(error("packed", ends[static_cast<std::size_t>(b)]) <= 1e-10);
      CHECK(error("counted", ends[static_cast<std::size_t>(b)]) <= 1e-10);
    }
  }
}

TEST_CASE("text alone: beam search with a cache past the original length matches passes over each text") {
  for (const std::string& name : models) {
    const pretrained::Pretrained loaded = model_of(name);
    CachedLm reader(*loaded.model, loaded.weights, {.dtype = f64, .cache = test::shared_kernels()});
    const NextLogits next = [&](auto sequences, auto) {
      std::vector<std::vector<double>> rows;
      for (const Ids& sequence : sequences) rows.push_back(logits_row(reader.start({&sequence, 1}), 0));
      return rows;
    };
    CachedLm lm(*loaded.model, loaded.weights, {.dtype = f64, .chunk = 4, .cache = test::shared_kernels()});
    for (const std::int64_t width : {1, 3, 5}) {
      INFO(name << ", " << width << " beams");
      const BeamOptions options{.width = width, .results = width, .longest = 5};
      const Ids prompt = text_of(10, width);
      const std::vector<Beam> want = beam_search(prompt, options, next), got = lm.beams(prompt, options);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].tokens == want[i].tokens);
        CHECK(got[i].score == Approx(want[i].score).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("text alone: missing or contradictory lengths are rejected") {
  const pretrained::Pretrained loaded = model_of("phi3_longrope");
  Graph g("refused");
  const Shape shape{Dim("B"), Dim("T")};
  pretrained::TokenInputs inputs{.ids = g.input("ids", i64, shape), .dtype = f64, .cache = nn::KeyValueCache()};
  CHECK(test::error_label([&] { (void)loaded.model->logits(inputs); }) == "rope_lengths");
  inputs = {.ids = inputs.ids,
            .dtype = f64,
            .segments = g.input("segments", i64, shape),
            .lengths = g.input("lengths", i64, {Dim("B")})};
  CHECK(test::error_label([&] { (void)loaded.model->logits(inputs); }) == "rope_lengths");
}
