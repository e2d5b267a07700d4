#include <catch2/catch.hpp>
#include <cctype>
#include <map>
#include <random>

#include "ir/ops/einsum.h"
#include "ir/ops/functional/functional_composites.h"
#include "tests/ops/samples.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::ir::test::random_tensor;
using lathe::test::error_label;
using lathe::test::Interpreted;
using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

namespace {

/// Sums the products over every assignment of indices to labels: the definition of einsum.
HostTensor einsum_by_loops(const EinsumTerms& terms, const std::vector<HostTensor>& operands) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t d = 0; d < terms.inputs[i].size(); ++d) {
      auto& size = sizes.emplace(terms.inputs[i][d], 1).first->second;
      if (operands[i].shape()[d] != 1) size = operands[i].shape()[d];
    }
  Sizes shape;
  for (const char c : terms.out) shape.push_back(sizes.at(c));
  HostTensor result(f64, shape);
  std::map<char, std::int64_t> at;
  std::int64_t total = 1;
  for (const auto& [label, size] : sizes) total *= size;
  const auto position = [&](const std::string& labels, const Sizes& dims) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) index = index * dims[d] + (dims[d] == 1 ? 0 : at[labels[d]]);
    return index;
  };
  for (std::int64_t n = 0; n < total; ++n) {
    std::int64_t rest = n;
    for (const auto& [label, size] : sizes) {
      at[label] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (std::size_t i = 0; i < operands.size(); ++i)
      product *= operands[i].get(position(terms.inputs[i], operands[i].shape()));
    const std::int64_t to = position(terms.out, shape);
    result.set(to, result.get(to) + product);
  }
  return result;
}

void check_einsum(const std::string& equation, const std::vector<Sizes>& sizes, std::mt19937& generator) {
  CAPTURE(equation, sizes);
  Interpreted t;
  std::vector<Value> values;
  std::vector<HostTensor> tensors;
  std::vector<int> ranks;
  for (const Sizes& size : sizes) {
    tensors.push_back(random_tensor({size, f64, -2, 2}, generator));
    values.push_back(t.input(tensors.back()));
    ranks.push_back(static_cast<int>(size.size()));
  }
  const auto fail = [](std::string_view, const std::string& message, std::string_view) { FAIL(message); };
  const HostTensor expected = einsum_by_loops(parse_einsum(equation, ranks, fail), tensors);
  CHECK(lathe::ir::test::distance(t.run(einsum(equation, values)), expected) < 1e-12);
}

/// A random equation of up to four operands over labels a to e, with repeats, ellipses and sizes of 1.
struct RandomEinsum {
  std::string equation;
  std::vector<Sizes> sizes;
};
RandomEinsum random_einsum(std::mt19937& generator) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); };
  std::map<char, std::int64_t> size;
  for (char c = 'a'; c <= 'e'; ++c) size[c] = pick(1, 3);
  const Sizes batch = {pick(1, 3), pick(1, 3)};
  RandomEinsum made;
  std::string used;
  bool ellipsis = false;
  const int operands = pick(1, 4);
  for (int i = 0; i < operands; ++i) {
    if (i > 0) made.equation += ',';
    Sizes sizes;
    const int rank = pick(0, 3), dots = pick(0, 3) == 0 ? pick(0, rank) : -1;
    std::map<char, std::int64_t> own;  // a repeated label is a diagonal with equal sizes; otherwise 1 broadcasts
    for (int d = 0; d <= rank; ++d) {
      if (d == dots) {
        made.equation += "...";
        ellipsis = true;
        for (int e = 2 - pick(0, 2); e < 2; ++e)
          sizes.push_back(pick(0, 2) == 0 ? 1 : batch[static_cast<std::size_t>(e)]);
      }
      if (d == rank) break;
      const char c = static_cast<char>('a' + pick(0, 4));
      made.equation += c;
      sizes.push_back(own.emplace(c, pick(0, 5) == 0 ? 1 : size[c]).first->second);
      if (used.find(c) == std::string::npos) used += c;
    }
    made.sizes.push_back(sizes);
  }
  if (pick(0, 3) == 0) return made;  // implicit result
  std::shuffle(used.begin(), used.end(), generator);
  made.equation += "->" + used.substr(0, static_cast<std::size_t>(pick(0, static_cast<int>(used.size()))));
  if (ellipsis && pick(0, 2) > 0) made.equation += "...";
  return made;
}

}  // namespace

TEST_CASE("einsum sums over all labels", "[einsum]") {
  std::mt19937 generator(3);
  for (const Sample& sample : ops::einsum.samples.value()) {
    std::vector<Sizes> sizes;
    for (const SampleOperand& operand : sample.operands) sizes.push_back(operand.sizes);
    check_einsum(sample.attrs.get<std::string>("equation"), sizes, generator);
  }
  for (int i = 0; i < 300; ++i) {
    const RandomEinsum made = random_einsum(generator);
    check_einsum(made.equation, made.sizes, generator);
  }
}

TEST_CASE("einsum of integers is exact", "[einsum]") {
  Interpreted t;
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const Value a = t.input(HostTensor::from_ints({1, 2}, {big, 1})),
              b = t.input(HostTensor::from_ints({2, 1}, {1, 2}));
  const Value parts[] = {a, b};
  const HostTensor product = t.run(einsum("ij,jk", parts));
  CHECK(product.dtype() == i64);
  CHECK(product.get_int(0) == big + 2);
}

TEST_CASE("einsum contracts connected operands first, and multiplies if nothing is summed", "[einsum]") {
  Interpreted t;
  const auto ops_of = [](const std::string& equation, const std::vector<Shape>& shapes) {
    GraphBuilder b("g");
    std::vector<Value> operands;
    for (const Shape& shape : shapes)
      operands.push_back(b.argument(ops::input, "x" + std::to_string(operands.size()), f32, shape));
    const Value value = einsum(equation, operands);
    const int before = b.graph().size();
    value.node().op->as<Composite>()->expand(b, value.node(), operands);
    std::string text;
    for (int i = before; i < b.graph().size(); ++i) {
      const Node& node = b.graph()[ValueId{i}];
      text += std::string(node.op->name.value) + " ";
      if (const Attribute* spec = node.attrs.find("spec")) text += std::get<std::string>(*spec) + " ";
    }
    return text;
  };
  const Dim n{"n"}, m{"m"};
  CHECK(ops_of("ij,kl,jk->il", {{n, 8}, {m, 4}, {8, m}}) == "contract ab,bc->ac contract ab,bc->ac ");
  CHECK(ops_of("nqhd,nkhd->nhqk", {{n, m, 8, 64}, {n, m, 8, 64}}) == "contract abcd,aecd->acbe ");
  CHECK(ops_of("i,j->ij", {{n}, {m}}) == "unsqueeze unsqueeze mul ");
  CHECK(ops_of("ij,jk->", {{n, m}, {m, 4}}) == "sum sum contract a,a-> ");
  CHECK(ops_of("ij->ji", {{n, m}}) == "permute contiguous ");
}

TEST_CASE("matmul follows torch.matmul for vectors, matrices and batches", "[matmul]") {
  std::mt19937 generator(5);
  for (const Sample& sample : ops::matmul.samples.value()) {
    const auto &a_sizes = sample.operands[0].sizes, &b_sizes = sample.operands[1].sizes;
    CAPTURE(a_sizes, b_sizes);
    // Compared with an equation with an ellipsis, which is checked above.
    const std::string lhs = a_sizes.size() == 1 ? "k" : "...mk", rhs = b_sizes.size() == 1 ? "k" : "...kn";
    const std::string out = std::string("...") + (a_sizes.size() > 1 ? "m" : "") + (b_sizes.size() > 1 ? "n" : "");
    Interpreted t;
    const Value a = t.input(random_tensor(sample.operands[0], generator));
    const Value b = t.input(random_tensor(sample.operands[1], generator));
    const Value both[] = {a, b};
    CHECK(lathe::ir::test::distance(t.run(matmul(a, b)), t.run(einsum(lhs + "," + rhs + "->" + out, both))) < 1e-14);
  }
  Interpreted t;
  const Value a = t.input({2, 2}, {1, 2, 3, 4}), b = t.input({2, 2}, {5, 6, 7, 8});
  CHECK(t.numbers(matmul(a, b)) == Numbers{19, 22, 43, 50});
  CHECK(t.numbers(linear(a, b, t.input({2}, {100, 200}))) == Numbers{117, 223, 139, 253});
}

TEST_CASE("matmul keeps dim names and does not copy a broadcast batch", "[matmul]") {
  GraphBuilder b("mha");
  const Dim batch{"nbatches"}, n{"n_seq"}, h{"h", 8}, kv{"kv", 1}, d{"d_k", 64};
  const Value q = b.argument(ops::input, "q", f32, {batch, h, n, d});
  const Value k = b.argument(ops::input, "k", f32, {batch, kv, n, d});
  const Value scores = matmul(q, transpose(k, -2, -1));
  CHECK(scores.shape().to_string() == "[nbatches, h=8, n_seq, n_seq]");
  const std::vector<Value> operands{q, transpose(k, -2, -1)};
  const Value expansion = scores.node().op->as<Composite>()->expand(b, scores.node(), operands);
  CHECK(expansion.node().op == &ops::contract);
  for (const Node& node : b.graph().nodes) CHECK(node.op != &ops::expand);
}

TEST_CASE("matmul sizes that are unknown until run time are checked then", "[matmul]") {
  GraphBuilder b("g");
  const Value x = b.argument(ops::input, "x", f32, {2, Dim("n")}),
              w = b.argument(ops::input, "w", f32, {Dim("m"), 3});
  b.output("y", matmul(x, w));
  REQUIRE(b.graph().checks.size() == 1);
  CHECK(b.graph().checks[0].label == "matmul_inner");
  const Graph graph = b.finish();
  const Tensors wrong{{"x", HostTensor(f32, {2, 4})}, {"w", HostTensor(f32, {5, 3})}};
  CHECK(error_label([&] { (void)interpret(graph, wrong); }) == "matmul_inner");
}

TEST_CASE("more dims than a contraction has letters are an error, not a crash") {
  GraphBuilder b("g");
  const Shape many(std::vector<Dim>(40, Dim(1)));
  const Value x = b.argument(ops::input, "x", f32, many);
  CHECK(error_label([&] { (void)matmul(x, x); }) == "matmul_rank");
  CHECK(error_label([&] { (void)linear(x, b.argument(ops::input, "w", f32, {1, 1})); }) == "linear_rank");
  const Value wide = b.argument(ops::input, "wide", f32, Shape(std::vector<Dim>(60, Dim(1))));
  const Value one[] = {wide};
  CHECK(error_label([&] { (void)einsum("...->...", one); }) == "einsum_rank");
}

TEST_CASE("no equation crashes einsum", "[einsum]") {
  std::mt19937 generator(11);
  const std::string characters = "iijjk.,->  .A\x01#";
  int good = 0, bad = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string equation;
    const int length = std::uniform_int_distribution<int>(0, 12)(generator);
    for (int c = 0; c < length; ++c)
      equation += characters[std::uniform_int_distribution<std::size_t>(0, characters.size() - 1)(generator)];
    GraphBuilder b("g");
    std::vector<Value> operands;
    const int count = std::uniform_int_distribution<int>(1, 2)(generator);
    for (int k = 0; k < count; ++k) operands.push_back(b.argument(ops::input, "x" + std::to_string(k), f32, {2, 2}));
    try {
      const Value value = einsum(equation, operands);
      (void)value.node().op->as<Composite>()->expand(b, value.node(), operands);
      ++good;
    } catch (const UserError& error) {
      CHECK(error.label().starts_with("einsum_"));
      ++bad;
    }
  }
  CHECK(good > 50);
  CHECK(bad > 1000);
}
