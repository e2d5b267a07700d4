#include "passes/fusion/prepare/split_batches.h"

#include <catch2/catch.hpp>

#include "tests/support/graphs/pass_text.h"

using namespace lathe;

namespace {

const test::PassText splitting{
    split_batches,
    "graph @g(input %q: f64[N, h=2, S, d=3], input %k: f64[N, h=2, S, d=3], input %p: f64[2*N, S, d=3], "
    "input %scale: f64[]) {\n",
    {{"N", 3}, {"S", 4}},
    1e-14};

}  // namespace

TEST_CASE("split_batches: a matmul whose batch dim is split afterwards gets split batch dims") {
  splitting.becomes(R"(  %1 = view %q {shape=[2*N, S, d=3]}
  %2 = view %k {shape=[2*N, S, d=3]}
  %3 = contract %1, %2 {spec="abc,adc->abd"}
  %4 = mul %3, %scale
  %5 = view %4 {shape=[N, h=2, S, S]}
  output "o" %5
)",
                    R"(  %1 = contract %q, %k {spec="aAbc,aAdc->aAbd"}
  %2 = mul %1, %scale
  output "o" %2
)");
}

TEST_CASE("split_batches: splits arguments, undoes merges through point-wise ops") {
  splitting.becomes(R"(  %1 = exp %k
  %2 = view %1 {shape=[2*N, S, d=3]}
  %3 = mul %2, %scale
  %4 = contract %p, %3 {spec="abc,adc->abd"}
  %5 = view %4 {shape=[N, 2, S, S]}
  %6 = exp %5
  output "o" %6
)",
                    R"(  %1 = exp %k
  %2 = mul %1, %scale
  %3 = view %p {shape=[N, 2, S, d=3]}
  %4 = contract %3, %2 {spec="aAbc,aAdc->aAbd"}
  %5 = exp %4
  output "o" %5
)");
}

TEST_CASE("split_batches: undoes merges that also add a dim of size 1, as in a bias per head and key") {
  splitting.becomes(R"(  %1 = sum %q {dims=[3]}
  %2 = exp %1
  %3 = view %2 {shape=[2*N, 1, S]}
  %4 = contract %p, %p {spec="abc,adc->abd"}
  %5 = add %3, %4
  %6 = view %5 {shape=[N, 2, S, S]}
  output "o" %6
)",
                    R"(  %1 = sum %q {dims=[3]}
  %2 = exp %1
  %3 = view %p {shape=[N, 2, S, d=3]}
  %4 = contract %3, %3 {spec="aAbc,aAdc->aAbd"}
  %5 = unsqueeze %2 {dim=2}
  %6 = add %5, %4
  output "o" %6
)");
}

TEST_CASE("split_batches: reductions, singleton views and broadcasts, with all other users of the values") {
  splitting.becomes(R"(  %1 = view %q {shape=[2*N, S, d=3]}
  %2 = contract %1, %p {spec="abc,adc->abd"}
  %3 = exp %2
  %4 = sum %3 {dims=[2]}
  %5 = unsqueeze %4 {dim=2}
  %6 = div %3, %5
  %7 = contract %6, %p {spec="abc,acd->abd"}
  %8 = contract %6, %1 {spec="abc,abd->acd"}
  %9 = view %6 {shape=[N, 2, S, S]}
  %10 = sum %9 {dims=[0]}
  %11 = sum %6 {dims=[0, 1]}
  output "y" %7
  output "z" %8
  output "b" %10
  output "c" %11
)",
                    R"(  %1 = view %p {shape=[N, 2, S, d=3]}
  %2 = contract %q, %1 {spec="aAbc,aAdc->aAbd"}
  %3 = exp %2
  %4 = sum %3 {dims=[3]}
  %5 = unsqueeze %4 {dim=3}
  %6 = div %3, %5
  %7 = contract %6, %1 {spec="aAbc,aAcd->aAbd"}
  %8 = view %7 {shape=[2*N, S, d=3]}
  %9 = contract %6, %q {spec="aAbc,aAbd->aAcd"}
  %10 = view %9 {shape=[2*N, S, d=3]}
  %11 = sum %6 {dims=[0]}
  %12 = sum %6 {dims=[0, 1, 2]}
  output "y" %8
  output "z" %10
  output "b" %11
  output "c" %12
)");
}

TEST_CASE("split_batches: values that are stored unsplit, or are intermediate outputs, are unchanged") {
  splitting.stays(R"(  %1 = view %q {shape=[2*N, S, d=3]}
  %2 = contract %1, %p {spec="abc,adc->abd"}
  %3 = view %2 {shape=[N, h=2, S, S]}
  %4 = sum %3 {dims=[1]}
  output "o" %4
)");
  splitting.stays(R"(  %1 = view %q {shape=[2*N, S, d=3]}
  %2 = contract %1, %p {spec="abc,adc->abd"}
  %3 = exp %2
  %4 = view %3 {shape=[N, h=2, S, S]}
  %5 = mul %4, %scale
  output "o" %3
  output "p" %5
)");
  splitting.stays(R"(  %1 = contract %p, %p {spec="abc,adc->abd"}
  %2 = exp %1
  %3 = view %2 {shape=[N, h=2, S, S]}
  %4 = mul %3, %scale
  %5 = slice %2 {dim=0, start=1, stop=2, step=1}
  output "o" %4
  output "p" %5
)");
}

TEST_CASE("split_batches: non-batch dims, and dims that would need a copy to split, are unchanged") {
  splitting.stays(R"(  %1 = view %q {shape=[2*N, S, d=3]}
  %2 = contract %1, %p {spec="abc,adc->abd"}
  %3 = softmax %2 {dim=2}
  %4 = contract %3, %p {spec="abc,acd->abd"}
  %5 = view %4 {shape=[N, h=2, S, d=3]}
  output "o" %5
)");
  splitting.stays(R"(  %1 = contract %p, %p {spec="abc,dbc->adb"}
  %2 = view %1 {shape=[N, h=2, 2*N, S]}
  output "o" %2
)");
  splitting.stays(R"(  %1 = contract %p, %p {spec="abc,adc->abd"}
  output "o" %1
)");
}

TEST_CASE("split_batches: a graph without such a matmul is returned, not copied") {
  ir::Graph graph = splitting.parse("  %1 = exp %p\n  output \"o\" %1\n");
  const ir::Node* const nodes = &graph.nodes[0];
  CHECK(&split_batches(std::move(graph)).nodes[0] == nodes);
}
