#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "passes/compile/compilation.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/machines/cpu_machine.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/collective_order.h"
#include "passes/program/signature.h"
#include "passes/program/text/parse_program.h"
#include "passes/program/text/print_program.h"
#include "tests/support/programs/program_interpreter.h"

using namespace lathe;
using Catch::Matchers::Contains;

namespace {

/// Two launches over one temporary, and a constant.
constexpr std::string_view two_launches = R"(program @two, 2 regions
// no collectives: nothing comes from other processes

region 0 rows
  %2 exp "e"  loc("a.cpp":3)
launch 0: kernel 0 @exp(x, "%2 exp e") for n
  as "element-wise", work 2, bytes 8*n
region 1 rows
  %3 mul  loc(gradient "a.cpp":4 in "block.0")
  %4 add  loc("a.cpp":5)
launch 1: kernel 1 @scale("%2 exp e", factor, y) for n
  as "element-wise" by "fma", work 1, flops 2*n, bytes 8*n
  not by "tensor cores" "it is no \"matmul\""
  message "y: out of range"

input x: f32[n] in x
output y: f32[n] in y
check n <= 64                             : exp [exp_size] "n is too large"  loc("a.cpp":3)
buffer x: input f32[n]  loc("a.cpp":1)
buffer y: output f32[n]  loc("a.cpp":5)
buffer "%2 exp e": temporary f32[n]  loc("a.cpp":3)
buffer factor: constant f32[1] = [2.0]

// kernel 0
kernel @exp(x: read f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load x[i0] : f32
    %1 = exp %0 : f32
    store y[i0] = %1
  }
}

// kernel 1
kernel @scale(e: read f32, f: read f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load f[0] : f32
    %1 = load e[i0] : f32
    %2 = mul %1, %0 : f32
    store y[i0] = %2
    check true:bool else 1
  }
}
)";

/// Three values in a row, of which the first is dead when the last is written.
constexpr std::string_view chain = R"(program @chain, 4 regions
region 0 rows
  %1 neg
launch 0: kernel 0 @neg(x, a) for 8*n
  as "element-wise"
region 1 rows
  %2 neg
launch 1: kernel 0 @neg(a, b) for 8*n
  as "element-wise"
region 2 rows
  %3 neg
launch 2: kernel 0 @neg(b, c) for 8*n
  as "element-wise"
region 3 rows
  %4 neg
launch 3: kernel 0 @neg(c, y) for 8*n
  as "element-wise"
input x: f32[n, 8] in x
output y: f32[n, 8] in y
buffer x: input f32[8*n]
buffer y: output f32[8*n]
buffer a: temporary f32[8*n]
buffer b: temporary f32[8*n]
buffer c: temporary f32[8*n]
kernel @neg(x: read f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load x[i0] : f32
    %1 = neg %0 : f32
    store y[i0] = %1
  }
}
)";

/// A sum over processes whose value the last of three launches reads.
constexpr std::string_view summed = R"(program @summed, 4 regions
collective 0: all_reduce along data=2, before launch 1
  %2 all_reduce : f32[64] from t to s, received r, folded p  loc("a.cpp":3)
    fold in region 1: kernel 1 @fold(r, p) for 2, 64
      as "fold of processes"
region 0 rows
  %1 neg
launch 0: kernel 0 @neg(x, t)
  as "element-wise"
region 2 rows
  %3 neg
launch 1: kernel 0 @neg(x, u)
  as "element-wise"
region 3 rows
  %4 neg
launch 2: kernel 0 @neg(s, y)
  as "element-wise"
input x: f32[64] in x
output y: f32[64] in y
output u: f32[64] in u
buffer x: input f32[64]
buffer y: output f32[64]
buffer u: output f32[64]
buffer t: temporary f32[64]
buffer s: temporary f32[64]
buffer r: temporary f32[65] with room
buffer p: temporary f32[65] with room
kernel @neg(x: read f32, y: write f32) {
  for i0 in 0..64 step 1 @parallel {
    %0 = load x[i0] : f32
    %1 = neg %0 : f32
    store y[i0] = %1
  }
}
kernel @fold(r: read f32, p: write f32; ranks, n) {
  for i0 in 0..n step 2 @parallel {
    %0 = load r[0] : f32
    store p[0] = %0
  }
}
)";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  const auto at = result.find(from);
  REQUIRE(at != std::string::npos);
  return result.replace(at, from.size(), to);
}

/// Checks the message of the ParseError, with its line and column.
void check_rejected(const std::string& text, const std::string& message) {
  try {
    parse_program(text, "p");
  } catch (const ParseError& error) {
    CHECK_THAT(error.what(), Contains(message));
    return;
  }
  FAIL("not rejected, expected: " << message);
}

}  // namespace

TEST_CASE("program text: a printed program is parsed and printed again", "[lowering]") {
  const Program program = parse_program(two_launches);
  CHECK(print_program(program) == two_launches);
  CHECK(program.launches[1].info.ops.size() == 2);
  CHECK(program.launches[1].loc == Location("a.cpp", 5));
  CHECK(program.launches[1].info.missed[0].path == Multiplier::mma);
  CHECK(program.buffers[3].data.size() == 1);
  verify_program(program);
}

TEST_CASE("program text: a parsed program runs", "[lowering]") {
  Program program = parse_program(two_launches);
  const ir::Graph signature = signature_of(program);
  const test::ProgramInterpreter interpreter(signature, std::move(program));
  const Tensors results = interpreter.run(Tensors{{"x", HostTensor::from({2}, {0, 1}, f32)}});
  CHECK(results.at("y").get(0) == 2);
  CHECK(results.at("y").get(1) == Approx(5.43656));
}

TEST_CASE("program text: buffers of one name are numbered", "[lowering]") {
  Program program = parse_program(chain);
  program.buffers[2].name = program.buffers[3].name = program.buffers[4].name = "packed";
  program.buffers[4].name = "packed #1";
  const std::string text = print_program(program);
  CHECK_THAT(text, Contains("buffer \"packed #2\": temporary f32[8*n] named \"packed\"\n") &&
                       Contains("buffer \"packed #1\": temporary f32[8*n]\n") &&
                       Contains("@neg(\"packed #2\", \"packed #3\") for 8*n"));
  CHECK(print_program(parse_program(text)) == text);
}

TEST_CASE("program text: the memory plan of a written program", "[lowering]") {
  const Program program = parse_program(chain);
  CHECK(print_plan(plan_memory(program, {{"n", 4}}), program) ==
        "arena of 256 B (least possible: 256 B), 256 B of arguments, results and constants\n"
        "        offset          bytes    launches  value\n"
        "             0            128        0..1  a\n"
        "             0            128        2..3  c\n"
        "           128            128        1..2  b\n");
}

TEST_CASE("program text: a collective overlaps with the launches of a written program", "[lowering]") {
  Program program = parse_program(summed);
  CHECK(program.collectives[0].start == 1);
  CHECK(program.collectives[0].done == 1);
  REQUIRE(program.collectives[0].parts[0].fold);
  CHECK(program.collectives[0].parts[0].fold->buffers == std::vector{5, 6});
  order_collectives(program, 0);
  const std::string text = print_program(program);
  CHECK_THAT(text, Contains("collective 0: all_reduce along data=2, during launches 1..1\n"
                            "  %2 all_reduce : f32[64] from t to s, received r, folded p  loc(\"a.cpp\":3)\n"
                            "    fold in region 1: kernel 1 @fold(r, p) for 2, 64\n"
                            "      as \"fold of processes\", work 1\n"));
  CHECK(parse_program(replaced(summed, "before launch 1", "after the launches")).collectives[0].done == 3);
  CHECK(print_program(parse_program(text)) == text);
}

TEST_CASE("program text: programs of graphs keep their text", "[lowering]") {
  const ir::Graph graph =
      ir::parse_graph(R"(graph @g(input %x: f32[n, 8], parameter %w: f32[8, 8], state %"odd name": f32[8]) {
  %1 = linear %x, %w, %"odd name"
  %2 = softmax %1 {dim=1}
  %3 = sum %2 {dims=[0]}
  update %"odd name" <- %3
  output "odd name" %2
})");
  for (const Machine& machine :
       {cpu_machine(*find_cpu_info("x86-64-v4")), cpu_machine(*find_cpu_info("x86-64-v2"))}) {
    const std::string text = print_program(compile_graph(graph, machine).program);
    const Program parsed = parse_program(text);
    CHECK(print_program(parsed) == text);
    CHECK(parsed.states.size() == 2);
    CHECK((parsed.states[0].is_parameter && !parsed.states[0].is_updated && parsed.states[1].is_updated));
    verify_program(parsed);
  }
}

TEST_CASE("program text: launches with a condition on a size") {
  const std::string both(two_launches);
  for (const char* condition : {"if n below 5", "if n*n from 96"}) {
    const std::string text = replaced(both, "bytes 8*n\nregion", fmt::format("bytes 8*n, {}\nregion", condition));
    CHECK(print_program(parse_program(text, "p")) == text);
  }
  check_rejected(replaced(both, "bytes 8*n\nregion", "bytes 8*n, if n 5\nregion"), "expected 'from'");
  check_rejected(replaced(both, "bytes 8*n\nregion", "bytes 8*n, if n below 0\nregion"), "the limit of the size");
}

TEST_CASE("program text: errors name the position and the expectation", "[lowering]") {
  const auto rejected = [](std::string_view from, std::string_view to, const std::string& message) {
    check_rejected(replaced(two_launches, from, to), message);
  };
  rejected("program @two", "programm @two", "p:1:1: expected 'program', found 'programm'");
  rejected("launch 1", "launch 2", "p:11:8: this has the number 1");
  rejected("launch 0: kernel 0", "launch 0: kernel 2", "p:6:11: there is no kernel 2");
  rejected("kernel 0 @exp(x", "kernel 0 @exq(x", "p:6:20: kernel 0 is called @exp");
  rejected("@exp(x, \"%2 exp e\") for n", "@exp(x) for n",
           "p:6:20: 1 buffers and 1 dims are given, and @exp has 2 and 1");
  rejected("factor, y)", "facto, y)", "p:11:39: there is no buffer facto");
  rejected("as \"element-wise\", work", "as \"elementwise\", work", "p:7:6: there is no \"elementwise\"");
  rejected("bytes 8*n\nregion", "byte 8*n\nregion",
           "p:7:30: expected work, flops, bytes, if, partial, reads or part");
  rejected("%2 exp \"e\"", "%2 expo \"e\"", "p:5:6: there is no op 'expo'");
  rejected("input x: f32[n]", "input x: f33[n]", "p:16:10: expected a dtype, such as f32, found 'f33'");
  rejected("buffer factor: constant", "buffer factor: konstant", "p:22:16: expected input, state, output, constant");
  rejected("buffer factor: ", "buffer x: ", "p:22:8: x is declared already");
  rejected("= [2.0]", "= [2.0", "p:25:1: expected ',' or ']', found 'kernel'");
  rejected("store y[i0] = %1", "store z[i0] = %1", "p:29:11: there is no buffer z here");
  rejected("check n <=", "chek n <=", "p:18:1: there is no statement chek");
  check_rejected(replaced(summed, "before launch 1", "during launches 2..1"),
                 "p:2:59: expected the number of the last launch");
  check_rejected(replaced(summed, "collective 0: all_reduce", "collective 0: all_sum"),
                 "p:2:15: expected all_reduce, reduce_scatter");
  check_rejected("program @p, 0 regions\ncollective 0: all_reduce along data=2, before launch 0\n",
                 "p:3:1: expected a value of the collective");
}
