#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <set>

#include "models/generation/cached_lm.h"
#include "models/generation/generator.h"
#include "tests/pretrained/cases/cases.h"
#include "tests/pretrained/cases/continuations.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using test::Continuations;
using test::HfCase;
using test::row_of;
using Ids = std::vector<std::int64_t>;

namespace {

/// Feeds the known continuations and compares the logits of every step, for the prompts `some` in one batch.
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

/// Compares the logits of every step of every case: each prompt on its own, whole and in chunks, and all in one
/// batch.
void check_cases(std::size_t first) {
  const auto cases = test::hf_cases("causal-lm");
  int compared = 0;
  for (std::size_t i = first; i < cases.size(); i += 4) {
    const Continuations known(cases[i]);
    if (known.prompts.empty()) continue;
    const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(cases[i].folder());
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

TEST_CASE("a cache may store keys and values in a narrower or wider dtype than the compute dtype") {
  test::KernelStore store;
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (!std::set<std::string>{"llama", "gemma2", "qwen2"}.contains(which.name)) continue;
    const auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
    const Continuations known(which);
    std::int64_t bytes = 0;
    // Rounding to 8 or 11 bits changes logits by some thousandths; f64 does not change them.
    for (const auto& [kept, least, most] :
         {std::tuple{f32, 0.0, 2e-5}, {bf16, 1e-5, 3e-2}, {f16, 1e-6, 4e-3}, {f64, 0.0, 2e-5}}) {
      INFO(which.name << ", cache in " << lathe::name(kept));
      CachedLm lm(*loaded.model, loaded.weights, {.cache_dtype = kept, .chunk = 3, .cache = &store});
      lm.start(known.prompts);
      const HostTensor& logits = lm.step(std::vector{known.new_ids[0][0], known.new_ids[1][0]});
      for (std::size_t b = 0; b < 2; ++b) {
        const double error = test::error_of(row_of(logits, static_cast<std::int64_t>(b)), row_of(known.logits[b], 1));
        CHECK(error >= least);
        CHECK(error <= most);
      }
      if (kept == f32) bytes = lm.cache_bytes();
      CHECK(lm.cache_bytes() * 4 == bytes * static_cast<std::int64_t>(size_in_bytes(kept)));
    }
    CHECK_THROWS_WITH(CachedLm::graph(*loaded.model, CachedLm::Kind::step, f32, Dim("B"), i8),
                      Catch::Contains("keys and values are not kept in i8") && Catch::Contains("cache_dtype"));
  }
}

TEST_CASE("cached logits match full passes, part 1") { check_cases(0); }
TEST_CASE("cached logits match full passes, part 2") { check_cases(1); }
TEST_CASE("cached logits match full passes, part 3") { check_cases(2); }
TEST_CASE("cached logits match full passes, part 4") { check_cases(3); }
