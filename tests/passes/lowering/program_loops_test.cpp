#include "passes/program/program_loops.h"

#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "passes/compile/program_time.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/memory/lifetimes.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/collective_order.h"
#include "passes/program/signature.h"
#include "passes/program/text/parse_program.h"
#include "passes/program/text/print_program.h"
#include "tests/support/programs/loop_programs.h"
#include "tests/support/programs/program_interpreter.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::with;

namespace {

Tensors interpreted(std::string_view text, const Tensors& arguments) {
  Program program = parse_program(text, "p");
  verify_program(program);
  const ir::Graph signature = signature_of(program);
  return test::ProgramInterpreter(signature, std::move(program)).run(arguments);
}

void check_equal(const Tensors& found, const Tensors& expected) {
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(found.at(name).same_bits(value));
  }
}

void check_syntax(std::string_view from, std::string_view to, const std::string& message) {
  CHECK_THROWS_AS(parse_program(with(test::recurrence, from, to), "p"), ParseError);
  CHECK_THROWS_WITH(parse_program(with(test::recurrence, from, to), "p"), Contains(message));
}

/// Checks that a program with the replacement violates a rule.
void check_rule(std::string_view text, std::string_view from, std::string_view to, const std::string& message) {
  INFO(from << " -> " << to);
  verify_program(parse_program(text));
  const Program program = parse_program(with(text, from, to));
  CHECK_THROWS_AS(verify_program(program), InternalError);
  CHECK_THROWS_WITH(verify_program(program), Contains(message));
}

std::string lifetimes_text(const Program& program) {
  std::string text;
  for (const Lifetime& each : lifetimes(program))
    text += program.buffers[static_cast<std::size_t>(each.buffer)].name + " " + std::to_string(each.first) + ".." +
            std::to_string(each.last) + "; ";
  return text;
}

}  // namespace

TEST_CASE("program loops: text is parsed and printed again", "[program]") {
  CHECK(print_program(parse_program(test::recurrence)) == test::recurrence);
  CHECK(print_program(parse_program(test::nested_loops)) == test::nested_loops);
  const Program program = parse_program(test::reversed_recurrence());
  CHECK(print_program(program) == test::reversed_recurrence());
  REQUIRE(program.buffers[6].slice);
  CHECK(*program.buffers[6].slice == BufferSlice{.of = 1, .loop = 0, .stride = Dim("n"), .reverse = true});
  CHECK(program.loops[0].loc == Location("rnn.cpp", 9));
}

TEST_CASE("program loops: syntax errors name the position and the expectation", "[program]") {
  check_syntax("loop 0:", "loop 1:", "p:3:6: this has the number 0");
  check_syntax("launches 1..2,", "launches 1..4,", "p:3:27: there is no launch 4");
  check_syntax("launches 1..2,", "launches 2..1,", "p:3:27: expected the number of the last launch");
  check_syntax("T times", "T", "p:3:33: expected 'times'");
  check_syntax("of x by loop 0", "of z by loop 0", "there is no buffer z");
  check_syntax("of x by loop 0", "of x by loop 1", "there is no loop 1");
  check_syntax("of x by loop 0", "", "expected 'of'");
  check_syntax("slice f32[n] of x", "sliced f32[n] of x", "expected input, state, output, constant, temporary");
}

TEST_CASE("program loops: the interpreter runs them", "[program]") {
  for (const std::int64_t steps : {0, 1, 5}) {
    const Tensors arguments = test::recurrence_arguments(steps, 6);
    check_equal(interpreted(test::recurrence, arguments), test::recurrence_results(arguments));
    check_equal(interpreted(test::reversed_recurrence(), arguments), test::recurrence_results(arguments, true));
  }
  for (const auto& [rows, steps] : {std::pair{3, 4}, {0, 4}, {3, 0}, {1, 1}}) {
    const HostTensor x = test::small_numbers({rows, steps, 5});
    check_equal(interpreted(test::nested_loops, {{"x", x}}), test::nested_results(x));
  }
}

TEST_CASE("program loops: ranges nest", "[program]") {
  check_rule(test::nested_loops, "\"sequences\" launches 1..5", "\"sequences\" launches 1..3",
             "the loop steps over launches 3 to 4 overlaps with the loop sequences over launches 1 to 3");
  check_rule(test::nested_loops, "\"sequences\" launches 1..5", "\"sequences\" launches 3..3", "must come before");
  check_rule(test::recurrence, ", T times", ", -1 times", "runs -1 times  [program_loop]");
  Program program = parse_program(test::recurrence);
  program.loops[0].end = 1;
  CHECK_THROWS_WITH(verify_program(program), Contains("has no launches, or some that do not exist"));
}

TEST_CASE("program loops: slices are parts of their buffers", "[program]") {
  const std::string_view x_at_t = "slice f32[n] of x by loop 0, stride n";
  check_rule(test::recurrence, x_at_t, "slice f32[n] of x by loop 0, stride 2*n", "in each of");
  check_rule(test::recurrence, x_at_t, "slice f32[n] of h by loop 0, stride n", "and h has 5  [program_slice]");
  check_rule(test::recurrence, "kernel 0 @copy(h, last)", "kernel 0 @copy(\"x at t\", last)",
             "slice x at t: f32[n]: a launch outside of the loop rnn accesses it, in launch 3");
  check_rule(test::nested_loops, "slice f32[n] of row by loop 1, stride n",
             "slice f32[n] of \"row at t\" by loop 1, stride n", "is a slice by the loop 1, which is not around 1");
  Program program = parse_program(test::recurrence);
  program.buffers[6].slice.reset();
  CHECK_THROWS_WITH(verify_program(program), Contains("the slice x at t is part of no buffer, and a slice"));
  program = parse_program(test::recurrence);
  program.buffers[1].kind = ProgramBuffer::Kind::scratch;
  CHECK_THROWS_AS(verify_program(program), InternalError);
  program = parse_program(test::recurrence);
  CHECK_THROWS_WITH(
      bind_loops(parse_program(with(test::recurrence, ", T times", ", T - 2 times")), {{"T", 1}, {"n", 3}}),
      Contains("rnn runs T - 2 = -1 times"));
}

TEST_CASE("program loops: each iteration writes what it reads", "[program]") {
  check_rule(test::recurrence, "kernel 0 @copy(h0, h)", "kernel 0 @copy(h0, last)",
             "temporary h: f32[n]: it is read and nothing wrote it before, in launch 1 of step");
  check_rule(test::recurrence, "kernel 0 @copy(h, last)", "kernel 0 @copy(g, last)",
             "temporary g: f32[n]: it is read and nothing wrote it before, in launch 3");
  check_rule(test::recurrence, "slice f32[n] of x by", "slice f32[n] of y by",
             "slice x at t: f32[n]: it is read and nothing wrote it before, in launch 1");
  // A loop that certainly runs has written what it writes.
  verify_program(parse_program(with(with(test::recurrence, "copy(h, last)", "copy(g, last)"), "T", "3")));
}

TEST_CASE("program loops: slices that leave a part of an output unwritten", "[program]") {
  const std::string text = with(with(test::recurrence, "output y: f32[T, n]", "output y: f32[T + 1, n]"),
                                "buffer y: output f32[T*n]", "buffer y: output f32[T*n + n]");
  CHECK_THROWS_WITH(verify_program(parse_program(text)), Contains("output y: f32[T*n + n]: nothing writes it"));
}

TEST_CASE("program loops: a kernel that relies on an alignment needs slices that have it", "[program]") {
  const std::string aligned = with(test::recurrence, "%2 = load x[i0] : f32", "%2 = load x[i0] align 64 : f32");
  CHECK_THROWS_WITH(verify_program(parse_program(aligned)),
                    Contains("slice x at t: f32[n]: the parameter 1 must start at a multiple of 64 bytes") &&
                        Contains("[program_alignment]"));
  const std::string wide =
      with(with(aligned, "x: f32[T, n]", "x: f32[T, 16*n]"), "input f32[T*n]", "input f32[16*T*n]");
  verify_program(parse_program(with(wide, "of x by loop 0, stride n", "of x by loop 0, stride 16*n")));
}

TEST_CASE("program loops: lifetimes", "[program]") {
  CHECK(lifetimes_text(parse_program(test::recurrence)) == "h 0..3; g 1..2; ");
  CHECK(lifetimes_text(parse_program(test::nested_loops)) == "row 1..4; h 2..5; ");
  // A value that an iteration reads before it writes it is live during all of the loop, and so is one that it writes
  // in part.
  CHECK(lifetimes_text(parse_program(with(test::nested_loops, "kernel 0 @clear(h)", "kernel 0 @clear(total)"))) ==
        "row 1..4; h 1..5; ");
  CHECK(lifetimes_text(parse_program(with(test::nested_loops, "copy(\"x at s\", row) for T*n\n  as \"copy\", work 1",
                                          "copy(\"x at s\", row) for T*n\n  as \"copy\", work 1, partial [1]"))) ==
        "row 1..5; h 2..5; ");
  // So is a sequence whose first access is by a loop in the loop.
  CHECK(lifetimes_text(parse_program(with(test::nested_loops, "row) for T*n", "\"y at s\") for T*n"))) ==
        "h 2..5; row 1..5; ");
  const Program program = parse_program(test::nested_loops);
  const MemoryPlan plan = plan_memory(program, {{"S", 2}, {"T", 16}, {"n", 16}});
  verify_plan(plan);
  CHECK(plan.lower_bound == 16 * 16 * 4 + 16 * 4);
  CHECK(plan.argument_bytes == 2 * 2 * 16 * 16 * 4 + 16 * 4);  // without slices
}

TEST_CASE("program loops: predicted times count every iteration", "[program]") {
  const Program program = parse_program(test::recurrence);
  CHECK(runs_of(program, 0) == Dim(1));
  CHECK(runs_of(program, 2) == Dim("T"));
  CHECK(runs_of(parse_program(test::nested_loops), 3) == Dim("S") * Dim("T"));
  shard::StepRates rates;
  rates.launch_seconds = 1;
  rates.memory_bandwidth = 0;
  CHECK(program_time(program, rates, {{"T", 10}, {"n", 4}}).memory == Approx(2 + 2 * 10));
}

TEST_CASE("program loops: collectives stay outside", "[program]") {
  const std::string text = with(test::recurrence, "// no collectives: nothing comes from other processes\n",
                                R"(collective 0: all_reduce along data=2, before launch 1
  %9 all_reduce : f32[n] from h to s
)") + "buffer s: temporary f32[n]\n";
  Program program = parse_program(text);
  program.collectives[0].start = program.collectives[0].done = 2;
  CHECK_THROWS_WITH(verify_program(program), Contains("a collective over data is inside the loop rnn"));
  // The loop writes h after the collective read it, and the last launch reads s.
  program = parse_program(with(text, "kernel 0 @copy(h, last)", "kernel 0 @copy(s, last)"));
  order_collectives(program, 0);
  CHECK(program.collectives[0].start == 1);
  CHECK(program.collectives[0].done == 1);
  // The collective reads what the loop writes, also through slices: it starts after the loop.
  const std::string after = with(text, "before launch 1", "before launch 3");
  for (const std::string_view read : {"f32[T*n] from y to s", "f32[n] from g to s"}) {
    program = parse_program(with(after, "f32[n] from h to s", read));
    order_collectives(program, 0);
    CHECK(program.collectives[0].start == 3);
    CHECK(program.collectives[0].done == 4);
  }
}
