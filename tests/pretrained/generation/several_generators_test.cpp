#include <catch2/catch.hpp>

#include "models/generation/cached_lm.h"
#include "tests/pretrained/cases/cases.h"
#include "tests/pretrained/cases/continuations.h"
#include "tests/support/kernels/kernel_store.h"

using namespace lathe;
using test::Continuations;
using test::HfCase;

TEST_CASE("two generators on one store, stepped in turns, match generators on separate stores") {
  test::KernelStore kernels;
  int compared = 0;
  for (const HfCase& which : test::hf_cases("causal-lm")) {
    if (which.name != "llama" && which.name != "gemma2") continue;
    INFO(which.name);
    const CachedLm::Options options{.chunk = 3, .threads = 1, .cache = &kernels};
    const auto shared = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
    const Continuations known(which);
    std::vector<CachedLm> together, apart;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto own = pretrained::load_pretrained<pretrained::CausalLm>(which.folder());
      together.emplace_back(*shared.model, shared.weights, options);
      apart.emplace_back(*shared.model, own.weights, options);
    }
    const std::size_t steps = std::min<std::size_t>(6, known.new_ids[0].size());
    for (std::size_t step = 0; step < steps; ++step)
      for (std::size_t i = 0; i < 2; ++i) {
        const auto logits = [&](CachedLm& lm) -> HostTensor {
          if (step == 0) return lm.start(std::vector<std::vector<CachedLm::TokenId>>{known.prompts[i]});
          return lm.step(std::vector{known.new_ids[i][step - 1]});
        };
        CHECK(logits(together[i]).same_bits(logits(apart[i])));
      }
    ++compared;
  }
  CHECK(compared == 2);
}
