#include <catch2/catch.hpp>

#include "ir/kernel/printer.h"
#include "tests/support/kernels/adding_blocks.h"

/// An order between the blocks of a launch.
using namespace lathe;
using namespace lathe::kernel;
using test::AddingBlocks;
using Mistake = AddingBlocks::Mistake;

namespace {

std::vector<float> interpreted(const AddingBlocks& k) {
  const Kernel kernel = k.build();
  return test::run_ordered(k, [&](std::span<const BoundBuffer> buffers) { interpret(kernel, buffers, {}); });
}

}  // namespace

TEST_CASE("block order: blocks add to the same rows in the order of their indices") {
  for (const int blocks : {1, 2, 7})
    for (const bool by_memory : {false, true}) {
      const AddingBlocks k{.blocks = blocks, .by_memory = by_memory};
      CHECK(interpreted(k) == test::ordered_result(k));
    }
  const AddingBlocks k;
  std::vector<float> backwards;
  const std::vector<float> x = test::ordered_terms(k);
  const std::size_t row = x.size() / static_cast<std::size_t>(k.blocks);
  backwards.assign(x.end() - static_cast<std::ptrdiff_t>(row), x.end());
  for (std::size_t i = x.size() - row; i-- > 0;) backwards[i % row] += x[i];
  CHECK(backwards != test::ordered_result(k));  // the order shows in the bits
}

TEST_CASE("block order: the turn of a block prints and parses") {
  const std::string text = print(AddingBlocks().build());
  INFO(text);
  for (const char* part : {"wait_block_turn turns[%3] at i0\n", "pass_block_turn turns[%3]\n"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("block order: turns that a GPU cannot take are rejected with the label of the rule") {
  const auto refused = [](Mistake mistake, const std::string& label) {
    CHECK_THROWS_WITH(AddingBlocks{.mistake = mistake}.build(), Catch::Contains("[" + label + "]"));
  };
  refused(Mistake::not_passed, "block_turn_pairs");
  refused(Mistake::nested, "block_turn_pairs");
  refused(Mistake::other_passed, "block_turn_pairs");
  refused(Mistake::added_late, "block_turn_pairs");
  refused(Mistake::in_branch, "block_turn_context");
  refused(Mistake::two_loops, "block_turn_context");
  refused(Mistake::read_outside, "block_turn_buffers");
  refused(Mistake::counted, "block_turn_buffers");
  refused(Mistake::first_turn, "block_turn_counters");
}

TEST_CASE("block order: the interpreter finds a wait for a block that starts later, and a turn of many threads") {
  const auto fails = [](Mistake mistake, const std::string& text) {
    CHECK_THROWS_WITH(interpreted({.mistake = mistake}), Catch::Contains(text));
  };
  fails(Mistake::later_first, "waits for turn 1 at rank 6, and blocks of lower index pass it 0 times  [block_order]");
  fails(Mistake::many_threads, "[block_turn_threads]");
}
