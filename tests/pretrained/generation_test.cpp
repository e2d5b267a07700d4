#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "frontend/generation/generator.h"
#include "tests/pretrained/cases.h"
#include "tests/support/kernel_store.h"
#include "tests/support/test_data.h"

using namespace lathe;
using test::HfCase;
using Ids = std::vector<std::int64_t>;

namespace {

Ids ids_of(const HostTensor& tensor) {
  Ids ids;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) ids.push_back(tensor.get_int(i));
  return ids;
}

HostTensor row_of(const HostTensor& rows, std::int64_t row) {
  const std::int64_t width = rows.shape().back();
  HostTensor made(rows.dtype(), {width});
  for (std::int64_t i = 0; i < width; ++i) made.set(i, rows.get(row * width + i));
  return made;
}

/// The prompts of a case, with what follows each.
struct Continuations {
  std::vector<Ids> prompts, new_ids;
  std::vector<HostTensor> logits;  ///< [steps, vocab] each

  explicit Continuations(const HfCase& which) {
    const SafetensorsFile inputs = which.inputs(), expected = which.expected();
    for (int i = 0; inputs.contains(fmt::format("prompt{}", i)); ++i) {
      prompts.push_back(ids_of(inputs.tensor(fmt::format("prompt{}", i))));
      new_ids.push_back(ids_of(expected.tensor(fmt::format("new_ids{}", i))));
      logits.push_back(expected.tensor(fmt::format("new_logits{}", i)));
    }
  }
};

/// Feeds what is known to follow, and compares the logits of every step: those of prompts `some`, side by side.
void check_steps(const HfCase& which, const pretrained::Pretrained& loaded, const Continuations& known,
                 const std::vector<std::size_t>& some, const SequenceModelOptions& options) {
  CachedLm lm(*loaded.model, loaded.weights, options);
  std::vector<Ids> prompts;
  for (const std::size_t i : some) prompts.push_back(known.prompts[i]);
  const double tolerance = options.dtype == f64 ? 1e-10 : 2e-5;
  const HostTensor* logits = &lm.start(prompts);
  const auto steps = known.new_ids[0].size();
  for (std::size_t step = 0; step < steps; ++step) {
    Ids tokens;
    for (std::size_t b = 0; b < some.size(); ++b) {
      INFO(which.name << " " << name(options.dtype) << " prompt " << some[b] << " of " << some.size() << " step "
                      << step << " chunk " << options.chunk);
      const HostTensor got = row_of(*logits, static_cast<std::int64_t>(b)),
                       want = row_of(known.logits[some[b]], static_cast<std::int64_t>(step));
      CHECK(test::error_of(got, want) <= tolerance);
      tokens.push_back(known.new_ids[some[b]][step]);
      CHECK(greedy(logits_row(got, 0)) == tokens.back());
    }
    if (step + 1 < steps) logits = &lm.step(tokens);
  }
}

/// Every step's logits of every case: prompts alone, whole and in chunks, and all at once.
void check_cases(std::size_t first) {
  const auto cases = test::hf_cases("causal-lm");
  int compared = 0;
  for (std::size_t i = first; i < cases.size(); i += 4) {
    const Continuations known(cases[i]);
    if (known.prompts.empty()) continue;
    const pretrained::Pretrained loaded = pretrained::load(cases[i].folder());
    for (const DType dtype : {f64, f32}) {
      test::KernelStore store;
      for (const std::int64_t chunk : {512, 3}) {
        const SequenceModelOptions options{.dtype = dtype, .chunk = chunk, .cache = &store};
        check_steps(cases[i], loaded, known, {0}, options);
        check_steps(cases[i], loaded, known, {0, 1}, options);
      }
    }
    ++compared;
  }
  CHECK(compared >= 3);
}

}  // namespace

TEST_CASE("a cache gives the logits of full passes, part 1") { check_cases(0); }
TEST_CASE("a cache gives the logits of full passes, part 2") { check_cases(1); }
TEST_CASE("a cache gives the logits of full passes, part 3") { check_cases(2); }
TEST_CASE("a cache gives the logits of full passes, part 4") { check_cases(3); }
