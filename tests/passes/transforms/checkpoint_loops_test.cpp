#include "passes/remat/checkpoint_loops.h"

#include <catch2/catch.hpp>

#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/remat/choose_segments.h"
#include "passes/remat/kept_carries.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Matchers::Contains;

namespace {

/// A loop that saves its carries and the squares of its elements, and a loop in the other direction that reads both.
/// `also`: more nodes and results.
ir::Graph squares(const std::string& also = "", const std::string& trips = "4*n") {
  return prepare_for_fusion(parse("graph @g(input %h: f64[3], input %x: f64[" + trips + R"(, 3], input %d: f64[3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %x, %x
    %2 = mul %h, %1
    %3 = contiguous %h
    output "carry" %3
    output "square" %1
    update %h <- %2
  }
  %1 = loop %h, %x {body=@step, sequences=1, trips=)" +
                                  trips + R"(}
  %2 = loop %h, %x {body=@step, sequences=1, result=1, trips=)" +
                                  trips + R"(}
  %3 = loop %h, %x {body=@step, sequences=1, result=2, trips=)" +
                                  trips + R"(}
  body @back(state %d: f64[3], input %h: f64[3], input %square: f64[3]) {
    %1 = mul %d, %h
    %2 = mul %d, %square
    output "dsquare" %1
    update %d <- %2
  }
  %4 = loop %d, %2, %3 {body=@back, sequences=2, reverse=true, trips=)" +
                                  trips + R"(}
  %5 = loop %d, %2, %3 {body=@back, sequences=2, result=1, reverse=true, trips=)" +
                                  trips + R"(}
  output "last" %1
  output "dh" %4
  output "dsquare" %5
)" + also + "}"));
}

std::vector<LoopSegments> segments_of(const ir::Graph& graph, std::int64_t every) {
  std::vector<LoopSegments> chosen;
  for (const LoopPair& pair : find_loop_pairs(graph))
    if (pair.left_alone.empty()) chosen.push_back({pair, every});
  return chosen;
}

/// Checks that segments of each length compute the same bits.
void check_lengths(const ir::Graph& graph, std::initializer_list<std::int64_t> lengths, const DimBindings& dims) {
  for (const std::int64_t every : lengths) {
    CAPTURE(every);
    const ir::Graph after = checkpoint_loops(graph, segments_of(graph, every));
    verify_prepared(after);
    CHECK(text(after) != text(graph));
    check_same_meaning(graph, after, random_arguments(graph, dims), 0);
  }
}

/// Returns the reasons for which loops are left alone.
std::vector<std::string> left_alone(const ir::Graph& graph) {
  std::vector<std::string> found;
  for (const LoopPair& pair : find_loop_pairs(graph)) found.push_back(pair.left_alone);
  return found;
}

}  // namespace

TEST_CASE("checkpoint-loops: a loop keeps a carry per segment, and its reader runs the segment again", "[loops]") {
  const ir::Graph graph = squares();
  CHECK(text(checkpoint_loops(graph, segments_of(graph, 2))) ==
        R"(graph @g(input %h: f64[3], input %x: f64[4*n, 3], input %d: f64[3]) {
  %1 = view %x {shape=[2*n, 2, 3]} : f64[2*n, 2, 3]
  body @step.segment(state %h: f64[3], input %x: f64[2, 3]) {
    body @step(state %h: f64[3], input %x: f64[3]) {
      %1 = mul %x, %x : f64[3]
      %2 = mul %h, %1 : f64[3]
      %3 = contiguous %h : f64[3]
      output "carry" %3
      output "square" %1
      update %h <- %2
    }
    %1 = loop %h, %x {body=@step, trips=2, sequences=1} : f64[3]
    %2 = contiguous %h : f64[3]
    output "checkpoint.h" %2
    update %h <- %1
  }
  %2 = loop %h, %1 {body=@step.segment, trips=2*n, sequences=1} : f64[3]
  %3 = loop %h, %1 {body=@step.segment, trips=2*n, sequences=1, result=1} : f64[2*n, 3]
  body @back.segment(state %d: f64[3], input %h: f64[3], input %x: f64[2, 3]) {
    body @step(state %h: f64[3], input %x: f64[3]) {
      %1 = mul %x, %x : f64[3]
      %2 = mul %h, %1 : f64[3]
      %3 = contiguous %h : f64[3]
      output "carry" %3
      output "square" %1
      update %h <- %2
    }
    %1 = loop %h, %x {body=@step, trips=2, sequences=1, result=1} : f64[2, 3]
    %2 = loop %h, %x {body=@step, trips=2, sequences=1, result=2} : f64[2, 3]
    body @back(state %d: f64[3], input %h: f64[3], input %square: f64[3]) {
      %1 = mul %d, %h : f64[3]
      %2 = mul %d, %square : f64[3]
      output "dsquare" %1
      update %d <- %2
    }
    %3 = loop %d, %1, %2 {body=@back, trips=2, sequences=2, reverse=true} : f64[3]
    %4 = loop %d, %1, %2 {body=@back, trips=2, sequences=2, result=1, reverse=true} : f64[2, 3]
    output "dsquare" %4
    update %d <- %3
  }
  %4 = loop %d, %3, %1 {body=@back.segment, trips=2*n, sequences=2, reverse=true} : f64[3]
  %5 = loop %d, %3, %1 {body=@back.segment, trips=2*n, sequences=2, result=1, reverse=true} : f64[2*n, 2, 3]
  %6 = view %5 {shape=[4*n, 3]} : f64[4*n, 3]
  %7 = contiguous %6 : f64[4*n, 3]
  output "last" %2
  output "dh" %4
  output "dsquare" %7
}
)");
  check_lengths(graph, {1, 2, 4}, {{"n", 3}});
  check_lengths(graph, {1, 2, 4}, {{"n", 0}});
  check_lengths(squares("", "12"), {1, 2, 3, 4, 6}, {});
}

TEST_CASE("checkpoint-loops: a stack of carries that others read has the checkpoints", "[loops]") {
  const ir::Graph graph = squares("  %6 = sum %2 {dims=[0], keepdim=false}\n  output \"sum\" %6\n", "6");
  CHECK(text(checkpoint_loops(graph, segments_of(graph, 3))) ==
        R"(graph @g(input %h: f64[3], input %x: f64[6, 3], input %d: f64[3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %x, %x : f64[3]
    %2 = mul %h, %1 : f64[3]
    %3 = contiguous %h : f64[3]
    output "carry" %3
    output "square" %1
    update %h <- %2
  }
  %1 = loop %h, %x {body=@step, trips=6, sequences=1} : f64[3]
  %2 = loop %h, %x {body=@step, trips=6, sequences=1, result=1} : f64[6, 3]
  %3 = view %2 {shape=[2, 3, 3]} : f64[2, 3, 3]
  %4 = view %x {shape=[2, 3, 3]} : f64[2, 3, 3]
  body @back.segment(state %d: f64[3], input %h: f64[3, 3], input %x: f64[3, 3]) {
    %1 = slice %h {dim=0, start=0, stop=1} : f64[1, 3]
    %2 = squeeze %1 {dim=0} : f64[3]
    %3 = contiguous %2 : f64[3]
    body @step(state %h: f64[3], input %x: f64[3]) {
      %1 = mul %x, %x : f64[3]
      %2 = mul %h, %1 : f64[3]
      %3 = contiguous %h : f64[3]
      output "carry" %3
      output "square" %1
      update %h <- %2
    }
    %4 = loop %3, %x {body=@step, trips=3, sequences=1, result=2} : f64[3, 3]
    body @back(state %d: f64[3], input %h: f64[3], input %square: f64[3]) {
      %1 = mul %d, %h : f64[3]
      %2 = mul %d, %square : f64[3]
      output "dsquare" %1
      update %d <- %2
    }
    %5 = loop %d, %h, %4 {body=@back, trips=3, sequences=2, reverse=true} : f64[3]
    %6 = loop %d, %h, %4 {body=@back, trips=3, sequences=2, result=1, reverse=true} : f64[3, 3]
    output "dsquare" %6
    update %d <- %5
  }
  %5 = loop %d, %3, %4 {body=@back.segment, trips=2, sequences=2, reverse=true} : f64[3]
  %6 = loop %d, %3, %4 {body=@back.segment, trips=2, sequences=2, result=1, reverse=true} : f64[2, 3, 3]
  %7 = view %6 {shape=[6, 3]} : f64[6, 3]
  %8 = sum %2 {dims=[0]} : f64[3]
  %9 = contiguous %7 : f64[6, 3]
  output "last" %1
  output "dh" %5
  output "dsquare" %9
  output "sum" %8
}
)");
  CHECK(stored_carries(graph, find_loop_pairs(graph)[0]) == std::vector<bool>{false});
  check_lengths(graph, {1, 2, 3}, {});
  // The sum is computed before the gradient, so without checkpoints its operand would be kept longer.
  const ir::Graph early = prepare_for_fusion(parse(R"(graph @g(input %h: f64[3], input %x: f64[6, 3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %h, %x
    %2 = contiguous %h
    %3 = exp %1
    output "carry" %2
    output "exp" %3
    update %h <- %1
  }
  %1 = loop %h, %x {body=@step, sequences=1, trips=6}
  %2 = loop %h, %x {body=@step, sequences=1, trips=6, result=1}
  %3 = loop %h, %x {body=@step, sequences=1, trips=6, result=2}
  %4 = sum %2 {dims=[0], keepdim=false}
  body @back(state %d: f64[3], input %exp: f64[3]) {
    %1 = mul %d, %exp
    update %d <- %1
  }
  %5 = loop %4, %3 {body=@back, sequences=1, reverse=true, trips=6}
  output "y" %5
})"));
  CHECK(stored_carries(early, find_loop_pairs(early)[0]) == std::vector<bool>{true});
  check_lengths(early, {1, 2, 3}, {});
}

TEST_CASE("checkpoint-loops: any directions, and the carry of the right end of a segment", "[loops]") {
  for (const std::string saver : {"false", "true"})
    for (const std::string reader : {"false", "true"})
      for (const std::string also : {"", "output \"stack\" %2"}) {
        CAPTURE(saver, reader, also);
        const ir::Graph graph = prepare_for_fusion(parse(R"(graph @g(input %h: f64[3], input %x: f64[12, 3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %h, %x
    %2 = add %1, %x
    %3 = contiguous %h
    %4 = exp %1
    output "carry" %3
    output "exp" %4
    update %h <- %2
  }
  %1 = loop %h, %x {body=@step, sequences=1, trips=12, reverse=)" +
                                                         saver + R"(}
  %2 = loop %h, %x {body=@step, sequences=1, trips=12, result=1, reverse=)" +
                                                         saver + R"(}
  %3 = loop %h, %x {body=@step, sequences=1, trips=12, result=2, reverse=)" +
                                                         saver + R"(}
  body @back(state %d: f64[3], input %exp: f64[3], input %x: f64[3]) {
    %1 = mul %d, %exp
    %2 = add %1, %x
    output "d" %1
    update %d <- %2
  }
  %4 = loop %1, %3, %x {body=@back, sequences=2, trips=12, reverse=)" +
                                                         reader + R"(}
  %5 = loop %1, %3, %x {body=@back, sequences=2, trips=12, result=1, reverse=)" +
                                                         reader + R"(}
  output "last" %4
  output "ds" %5
  )" + also + "\n}"));
        check_lengths(graph, {1, 3, 4}, {});
      }
}

TEST_CASE("checkpoint-loops: loops that carry nothing need no checkpoints", "[loops]") {
  const ir::Graph graph = prepare_for_fusion(parse(R"(graph @g(input %x: f64[6, 3], input %d: f64[3]) {
  body @step(input %x: f64[3]) {
    %1 = exp %x
    output "exp" %1
  }
  %1 = loop %x {body=@step, sequences=1, trips=6}
  body @back(state %d: f64[3], input %exp: f64[3]) {
    %1 = mul %d, %exp
    update %d <- %1
  }
  %2 = loop %d, %1 {body=@back, sequences=1, trips=6}
  output "d" %2
})"));
  CHECK(text(checkpoint_loops(graph, segments_of(graph, 2))) ==
        R"(graph @g(input %x: f64[6, 3], input %d: f64[3]) {
  %1 = view %x {shape=[3, 2, 3]} : f64[3, 2, 3]
  body @back.segment(state %d: f64[3], input %x: f64[2, 3]) {
    body @step(input %x: f64[3]) {
      %1 = exp %x : f64[3]
      output "exp" %1
    }
    %1 = loop %x {body=@step, trips=2, sequences=1} : f64[2, 3]
    body @back(state %d: f64[3], input %exp: f64[3]) {
      %1 = mul %d, %exp : f64[3]
      update %d <- %1
    }
    %2 = loop %d, %1 {body=@back, trips=2, sequences=1} : f64[3]
    update %d <- %2
  }
  %2 = loop %d, %1 {body=@back.segment, trips=3, sequences=1} : f64[3]
  output "d" %2
}
)");
  check_lengths(graph, {1, 2, 3}, {});
}

TEST_CASE("checkpoint-loops: loops in the body of a loop", "[loops]") {
  const ir::Graph graph = prepare_for_fusion(parse(R"(graph @g(input %h: f64[3], input %x: f64[5, 4, 3]) {
  body @outer(state %h: f64[3], input %x: f64[4, 3]) {
    body @step(state %h: f64[3], input %x: f64[3]) {
      %1 = mul %h, %x
      %2 = contiguous %h
      output "carry" %2
      update %h <- %1
    }
    %1 = loop %h, %x {body=@step, sequences=1, trips=4}
    %2 = loop %h, %x {body=@step, sequences=1, trips=4, result=1}
    body @back(state %d: f64[3], input %h: f64[3]) {
      %1 = add %d, %h
      update %d <- %1
    }
    %3 = loop %1, %2 {body=@back, sequences=1, trips=4, reverse=true}
    update %h <- %3
  }
  %1 = loop %h, %x {body=@outer, sequences=1, trips=5}
  output "h" %1
})"));
  const std::vector<LoopPair> pairs = find_loop_pairs(graph);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].body.has_value());
  CHECK(pairs[0].runs == Dim(5));
  check_lengths(graph, {1, 2}, {});
}

TEST_CASE("checkpoint-loops: loops that are left alone", "[loops]") {
  const auto reasons = [](const std::string& also) { return left_alone(squares(also)); };
  CHECK(reasons("") == std::vector<std::string>{""});
  // Both stacks are read by other ops.
  const std::string sums = "  %6 = sum %2 {dims=[0], keepdim=false}\n  %7 = sum %3 {dims=[0], keepdim=false}\n";
  const std::vector<std::string> read = reasons(sums + "  output \"a\" %6\n  output \"b\" %7\n");
  REQUIRE(read.size() == 1);
  CHECK_THAT(read[0], Contains("its saved values are also read by sum at "));
  CHECK(reasons("  output \"a\" %2\n  output \"b\" %3\n") ==
        std::vector<std::string>{"its saved values are also results of the graph"});
  CHECK(left_alone(squares("", "1")) == std::vector<std::string>{"it has one iteration"});
  // Another loop reads a stack whole, or as the first value of a carry.
  CHECK(left_alone(prepare_for_fusion(parse(R"(graph @g(input %h: f64[2], input %x: f64[2, 2]) {
  body @step(state %h: f64[2], input %x: f64[2]) {
    %1 = mul %h, %x
    output "y" %1
    update %h <- %1
  }
  %1 = loop %h, %x {body=@step, sequences=1, trips=2, result=1}
  body @whole(state %s: f64[2, 2], input %h: f64[2], input %all: f64[2, 2]) {
    %1 = add %s, %h
    %2 = add %1, %all
    update %s <- %2
  }
  %2 = loop %1, %1, %1 {body=@whole, sequences=1, trips=2}
  output "s" %2
})")))
            .size() == 1);
  // No loop reads the outputs of another one.
  CHECK(find_loop_pairs(prepare_for_fusion(parse(R"(graph @g(input %h: f64[3], input %x: f64[6, 3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %h, %x
    output "y" %1
    update %h <- %1
  }
  %1 = loop %h, %x {body=@step, sequences=1, trips=6}
  %2 = loop %h, %x {body=@step, sequences=1, trips=6, result=1}
  %3 = exp %2
  %4 = loop %1, %3 {body=@step, sequences=1, trips=6}
  output "y" %4
})")))
            .empty());
}

TEST_CASE("checkpoint-loops: a loop of a chain is in one pair", "[loops]") {
  const ir::Graph graph = prepare_for_fusion(parse(R"(graph @g(input %h: f64[3], input %x: f64[6, 3]) {
  body @step(state %h: f64[3], input %x: f64[3]) {
    %1 = mul %h, %x
    %2 = exp %1
    output "y" %2
    update %h <- %1
  }
  %1 = loop %h, %x {body=@step, sequences=1, trips=6, result=1}
  %2 = loop %h, %1 {body=@step, sequences=1, trips=6, result=1}
  %3 = loop %h, %2 {body=@step, sequences=1, trips=6}
  output "y" %3
})"));
  CHECK(left_alone(graph) ==
        std::vector<std::string>{"", "one of the two loops is recomputed, or recomputes, already"});
  check_lengths(graph, {1, 2, 3}, {});
}

TEST_CASE("checkpoint-loops: the length of segments takes the least memory", "[loops]") {
  const auto chosen = [](const ir::Graph& graph, const DimBindings& dims) -> std::int64_t {
    const auto choice = choose_segments(graph, find_loop_pairs(graph)[0], dims);
    return choice ? choice->loops.every : 0;
  };
  // A carry, and two values of each iteration: the root of T / 2, if it divides T.
  CHECK(chosen(squares("", "512"), {}) == 16);
  CHECK(chosen(squares("", "4096"), {}) == 64);  // as much as 32, in fewer segments
  CHECK(chosen(squares("", "6"), {}) == 2);
  CHECK(chosen(squares("", "n"), {{"n", 512}}) == 1);
  CHECK(chosen(squares("", "4*n"), {{"n", 128}}) == 4);
  CHECK(chosen(squares("", "4*n"), {{"n", 1}}) == 2);
  CHECK(chosen(squares("", "n"), {{"n", 1}}) == 0);
  CHECK(chosen(squares("", "n"), {{"n", 0}}) == 0);
  const ir::Graph graph = squares("", "512");
  const SegmentChoice choice = choose_segments(graph, find_loop_pairs(graph)[0], {}).value();
  CHECK(choice.saved == 512 * 2 * 24);
  CHECK(choice.kept == 32 * 24 + 16 * 2 * 24);
}
