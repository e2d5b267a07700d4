#include "ir/tensor/text/printer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "ir/tensor/builder.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::ir::test::op;

TEST_CASE("doubles print as the shortest text that round-trips", "[printer]") {
  CHECK(print_real(0.1) == "0.1");
  CHECK(print_real(1) == "1.0");
  CHECK(print_real(-1e9) == "-1e9");
  CHECK(print_real(1e-5) == "1e-5");
  CHECK(print_real(0.125) == "0.125");
  CHECK(print_real(-0.0) == "-0.0");
  CHECK(print_real(1 / 3.0) == "0.3333333333333333");
  CHECK(print_real(std::numeric_limits<double>::max()) == "1.7976931348623157e308");
  CHECK(print_real(std::numeric_limits<double>::denorm_min()) == "5e-324");
  CHECK(print_real(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(print_real(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(print_real(std::nan("")) == "nan");
}

TEST_CASE("quotes escape characters that would end the string or the line", "[printer]") {
  CHECK(quoted("a\"b\\c\nd\te\x01") == R"("a\"b\\c\nd\te\x01")");
  CHECK(sigiled('%', "encoder.0.W_q") == "%encoder.0.W_q");
  CHECK(sigiled('%', "1") == "%\"1\"");
  CHECK(sigiled('@', "two words") == "@\"two words\"");
}

TEST_CASE("attributes print as documented in docs/ir.md", "[printer]") {
  CHECK(print_attribute(true) == "true");
  CHECK(print_attribute(std::int64_t{-3}) == "-3");
  CHECK(print_attribute(0.5) == "0.5");
  CHECK(print_attribute(std::string("ij,jk->ik")) == "\"ij,jk->ik\"");
  CHECK(print_attribute(bf16) == "bf16");
  CHECK(print_attribute(Dim("n") + 1) == "n + 1");
  CHECK(print_attribute(std::vector<std::int64_t>{1, -2}) == "[1, -2]");
  CHECK(print_attribute(std::vector<double>{}) == "[]");
  CHECK(print_attribute(std::vector<double>{1, 0.5}) == "[1.0, 0.5]");
  CHECK(print_attribute(Shape{Dim("n"), Dim("h", 8)}) == "[n, h=8]");
}

TEST_CASE("locations print with scope and gradient", "[printer]") {
  CHECK(print_location({}) == "loc(unknown)");
  CHECK(print_location(Location("mha.cpp", 14)) == R"(loc("mha.cpp":14))");
  CHECK(print_location(Location("mha.cpp", 14, "encoder.0").as_gradient()) ==
        R"(loc(gradient "mha.cpp":14 in "encoder.0"))");
}

TEST_CASE("locations in messages omit the scope, and places omit the gradient", "[printer]") {
  const Location layer("mha.cpp", 14, "encoder.0");
  CHECK(layer.to_string() == "mha.cpp:14");
  CHECK(layer.place() == "mha.cpp:14");
  CHECK(layer.as_gradient().to_string() == "gradient of mha.cpp:14");
  CHECK(layer.as_gradient().place() == "mha.cpp:14");
  CHECK(Location().to_string() == "<unknown>");
  CHECK(Location().as_gradient().place() == "an unknown line");
}

TEST_CASE("a graph prints with ids, defaults omitted, names and locations", "[printer]") {
  const Graph graph = parse_graph(ir::test::attention_text, "mha.lathe");
  CHECK(print(graph) == R"(graph @mha(
  input %x: f32[nbatches, n_seq, d_model=512]                                               loc("mha.cpp":10),
  input %mask: bool[nbatches, 1, 1, n_seq]                                                  loc("mha.lathe":4),
  parameter %W_q: f32[d_model=512, d_model=512]                                             loc("mha.cpp":11 in "encoder.0.self"),
  state %step: i64[]                                                                        loc("mha.lathe":6)
) {
  %1 = linear %x, %W_q                      : f32[nbatches, n_seq, d_model=512]             loc("mha.cpp":14)
  %2 = view %1 {shape=[nbatches, n_seq, h=8, d_k=64]}       : f32[nbatches, n_seq, h=8, d_k=64]  name("q")  loc("mha.cpp":14 in "encoder.0.self")
  %3 = transpose %2 {dim0=1, dim1=2}        : f32[nbatches, h=8, n_seq, d_k=64] strided     loc(gradient "mha.cpp":14)
  %4 = transpose %3 {dim0=-2, dim1=-1}      : f32[nbatches, h=8, d_k=64, n_seq] strided     loc("mha.lathe":11)
  %5 = matmul %3, %4                        : f32[nbatches, h=8, n_seq, n_seq]              loc("mha.lathe":12)
  %6 = constant {dtype=f32, shape=[], values=[8.0]}         : f32[]                         loc("mha.lathe":13)
  %7 = div %5, %6                           : f32[nbatches, h=8, n_seq, n_seq]              loc("mha.lathe":14)
  %8 = masked_fill %7, %mask {value=-1e9}   : f32[nbatches, h=8, n_seq, n_seq]  name("masked scores")       loc("mha.lathe":15)
  %9 = softmax %8 {dim=-1}                  : f32[nbatches, h=8, n_seq, n_seq]              loc("mha.lathe":16)
  %10 = constant {dtype=i64, shape=[], values=[1.0]}        : i64[]                         loc("mha.lathe":17)
  %11 = add %step, %10                      : i64[]                                         loc("mha.lathe":18)
  output "weights" %9
  update %step <- %11
}
)");
}

TEST_CASE("a line of text depends only on its own node", "[printer]") {
  const PrintOptions no_locations{.locations = false};
  const auto text = [&](bool longer) {
    GraphBuilder b("g");
    const Value x = b.argument(op("input"), "x", f32, {Dim("n"), 4});
    Value y = b.add(op("exp"), {x});
    if (longer) y = b.add(op("view"), {y}, {{"shape", Shape{Dim("n"), Dim("two", 2), Dim("also_two", 2)}}});
    b.output("y", b.add(op("softmax"), {x}, {{"dim", std::int64_t{-1}}}));
    b.output("z", y);
    return print(b.finish(), no_locations);
  };
  const std::string shared =
      "graph @g(input %x: f32[n, 4]) {\n  %1 = exp %x                               : f32[n, 4]\n";
  CHECK(text(false).substr(0, shared.size()) == shared);
  CHECK(text(true).substr(0, shared.size()) == shared);
}

TEST_CASE("strides print on demand", "[printer]") {
  GraphBuilder b("g");
  const Value x = b.argument(op("input"), "x", f32, {Dim("n"), 4});
  const Value t = b.add(op("transpose"), {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  CHECK(print_type(t.type()) == "f32[4, n] strided");
  CHECK(print_type(t.type(), true) == "f32[4, n] strided(1, 4)");
  CHECK(print_type(x.type(), true) == "f32[n, 4]");
  b.output("t", t);
  const Graph graph = b.finish();
  const std::string with_strides = print(graph, {.strides = true});
  CHECK(with_strides.find("strided(1, 4)") != std::string::npos);
  CHECK(print(parse_graph(with_strides), {.strides = true}) == with_strides);
}
