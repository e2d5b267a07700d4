#include <catch2/catch.hpp>

#include "tests/tools/command.h"

/// Loops within a memory budget, on the command line.
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

const std::string recurrent = R"(graph @rnn(input %x: f32[T, 8, 32], parameter %w: f32[32, 32]) {
  %1 = constant {dtype=f32, shape=[8, 32], values=[0.0]}
  body @step(state %h: f32[8, 32], input %x: f32[8, 32], input %w: f32[32, 32]) {
    %1 = matmul %h, %w
    %2 = add %1, %x
    %3 = tanh %2
    update %h <- %3
  }
  %2 = loop %1, %x, %w {body=@step, trips=T, sequences=1}
  %3 = sum %2 {dims=[0, 1]}
  output "loss" %3
}
)";

}  // namespace

TEST_CASE("a memory budget: loops run again for their gradients, with the same results", "[tools]") {
  const Scratch scratch;
  scratch.write("forward.lathe", recurrent);
  REQUIRE(run_lathe(scratch, "grad forward.lathe --of loss --wrt w -o rnn.lathe").status == 0);
  const std::string sizes = "rnn.lathe --dim T=512";
  const auto refused = run_lathe(scratch, "explain --memory-budget 1KiB " + sizes);
  CHECK(refused.status != 0);
  CHECK_THAT(refused.err, Contains("[memory_budget]"));
  const auto at = refused.err.find(" bytes are the least");
  REQUIRE(at != std::string::npos);
  const auto start = refused.err.find_last_not_of("0123456789", at - 1) + 1;
  const std::string least = " --memory-budget " + refused.err.substr(start, at - start) + " ";

  const auto told = run_lathe(scratch, "explain" + least + sizes);
  INFO(told.out << told.err);
  CHECK_THAT(told.out, Contains("loops that run again for their gradients, and the total memory after each:\n") &&
                           Contains("  @step forward.lathe:") && Contains(": 1 of 512 iterations at a time; ") &&
                           Contains(" of saved values become ") && Contains("more arithmetic"));
  CHECK_THAT(run_lathe(scratch, "explain --memory-budget 1GiB " + sizes).out,
             Contains("loops that do not run again:\n") && Contains(": the budget is met without it\n"));
  CHECK_THAT(run_lathe(scratch, "dump --after checkpoint-loops" + least + sizes).out,
             Contains("body @step.gradient.segment(") && Contains("trips=T"));

  CHECK(run_lathe(scratch, "run --random -o free.safetensors " + sizes).status == 0);
  CHECK(run_lathe(scratch, "run --random -o least.safetensors" + least + sizes).status == 0);
  CHECK(scratch.read("free.safetensors") == scratch.read("least.safetensors"));
}
