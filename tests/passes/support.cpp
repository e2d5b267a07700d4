#include "tests/passes/support.h"

#include <catch2/catch.hpp>
#include <regex>

#include "ir/support/error.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/diff/graph_diff.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"

namespace lathe::ir::test {

Graph parse(std::string_view text) {
  Graph graph = parse_graph(text, "test");
  verify(graph);
  return graph;
}

std::string text(const Graph& graph) {
  PrintOptions options;
  options.locations = false;
  std::string result;
  for (const char c : print(graph, options)) {
    if (c == ':')
      while (result.ends_with("  ")) result.pop_back();
    result += c;
  }
  return result;
}

std::string changes(const Graph& before, const Graph& after) {
  static const std::regex location(R"( \((gradient of )?test:\d+\))");
  return std::regex_replace(to_string(diff(before, after)), location, "");
}

void check_same_meaning(const Graph& before, const Graph& after, const Tensors& arguments, double tolerance) {
  verify(before);
  verify(after);
  INFO(changes(before, after));
  InterpretOptions options;
  options.round = false;
  const Tensors expected = interpret(before, arguments, options), found = interpret(after, arguments, options);
  REQUIRE(expected.size() == found.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    REQUIRE(found.count(name) == 1);
    CHECK(distance(value, found.at(name)) <= tolerance);
  }
}

std::string error_text(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

HostTensor finite_difference(const Graph& graph, const Tensors& arguments, const std::string& output,
                             const std::string& wrt, const HostTensor* weights, double eps) {
  const auto value = [&](const Tensors& at) {
    const HostTensor result = interpret(graph, at).at(output);
    double total = 0;
    for (std::int64_t i = 0; i < result.numel(); ++i) {
      const auto element = get_complex(result, i);
      const auto weight = weights ? get_complex(*weights, i) : std::complex<double>(1);
      total += element.real() * weight.real() + element.imag() * weight.imag();
    }
    return total;
  };
  HostTensor gradient(arguments.at(wrt).dtype(), arguments.at(wrt).shape());
  Tensors at = arguments;
  HostTensor& moved = at.at(wrt);
  const bool complex = is_complex(gradient.dtype());
  for (std::int64_t i = 0; i < gradient.numel(); ++i) {
    const auto middle = get_complex(moved, i);
    const auto set = [&](std::complex<double> v) { complex ? set_complex(moved, i, v) : moved.set(i, v.real()); };
    const auto along = [&](std::complex<double> direction) {
      set(middle + eps * direction);
      const double above = value(at);
      set(middle - eps * direction);
      const double below = value(at);
      set(middle);
      return (above - below) / (2 * eps);
    };
    if (complex)
      set_complex(gradient, i, {along(1), along({0, 1})});
    else
      gradient.set(i, along(1));
  }
  return gradient;
}

void check_gradients(const Graph& forward, const Graph& with_gradients, const Tensors& arguments,
                     const std::string& output) {
  verify(with_gradients);
  const Tensors results = interpret(with_gradients, arguments);
  const auto cotangent = arguments.find("cot." + output);
  Tensors of_forward;
  for (const ValueId id : forward.arguments()) of_forward.emplace(forward[id].name, arguments.at(forward[id].name));
  int checked = 0;
  for (const auto& [name, value] : results) {
    if (!name.starts_with("grad.")) continue;
    INFO(name);
    const auto* weights = cotangent == arguments.end() ? nullptr : &cotangent->second;
    CHECK(distance(finite_difference(forward, of_forward, output, name.substr(5), weights), value) < 1e-5);
    ++checked;
  }
  CHECK(checked > 0);
}

const std::vector<Specimen>& specimens() {
  static const std::vector<Specimen> all = {
      {"mlp",
       R"(graph @mlp(input %x: f64[n, 3], parameter %W: f64[4, 3], parameter %b: f64[4], input %t: i64[n]) {
  %1 = linear %x, %W, %b
  %2 = gelu %1
  %3 = layer_norm %2
  %4 = cross_entropy %3, %t
  output "loss" %4
})",
       {{"n", 5}}},
      {"attention",
       R"(graph @attention(input %x: f64[b, s, d=6], parameter %Wq: f64[6, 6], parameter %Wk: f64[6, 6],
                       parameter %Wv: f64[6, 6], parameter %Wo: f64[6, 6]) {
  %q = linear %x, %Wq
  %k = linear %x, %Wk
  %v = linear %x, %Wv
  %q1 = view %q {shape=[b, s, 2, 3]}
  %q2 = transpose %q1 {dim0=1, dim1=2}
  %k1 = view %k {shape=[b, s, 2, 3]}
  %k2 = transpose %k1 {dim0=1, dim1=2}
  %v1 = view %v {shape=[b, s, 2, 3]}
  %v2 = transpose %v1 {dim0=1, dim1=2}
  %a = attention %q2, %k2, %v2 {scale=0.5, causal=true}
  %a1 = transpose %a {dim0=1, dim1=2}
  %a2 = contiguous %a1
  %a3 = view %a2 {shape=[b, s, d=6]}
  %y = linear %a3, %Wo
  %z = mul %y, %y
  %l = sum %z {dims=[0, 1, 2]}
  output "loss" %l
})",
       {{"b", 2}, {"s", 4}}},
      {"gather_rope",
       R"(graph @gather_rope(parameter %E: f64[3, 4], input %i: i64[b, s], input %cos: f64[s, 4],
                         input %sin: f64[s, 4], parameter %g: f64[4]) {
  %e = gather %E, %i {dim=0}
  %r = rope %e, %cos, %sin
  %n = rms_norm %r, %g
  %s = silu %n
  %m = mean %s {dims=[0, 1, 2]}
  output "loss" %m
  output "r" %r
})",
       {{"b", 2}, {"s", 3}}},
      {"split",
       R"(graph @split(input %x: f64[b, 6], input %y: f64[b, 2]) {
  %p = slice %x {dim=1, start=0, stop=2}
  %q = slice %x {dim=1, start=2, stop=4}
  %r = slice %x {dim=1, start=4, stop=6}
  %pq = mul %p, %q
  %c = concat %pq, %r, %y {dim=1}
  %d = sub %c, %x
  %e = mul %d, %d
  %f = max %e {dims=[1]}
  %l = sum %f {dims=[0]}
  output "loss" %l
})",
       {{"b", 3}}},
      {"masks",
       R"(graph @masks(input %x: f64[b, s, s], input %m: bool[b, 1, s]) {
  %n = logical_not %m
  %f = masked_fill %x, %n {value=-1e9}
  %t = tril %f
  %w = softmax %t {dim=-1}
  %g = log_softmax %t {dim=1}
  %c = clamp %g {low=-1.5, high=1.0}
  %a = abs %c
  %u = add %w, %a
  %v = var %u {dims=[2]}
  %l = sum %v {dims=[0, 1]}
  output "loss" %l
})",
       {{"b", 2}, {"s", 4}}},
      {"complex",
       R"(graph @complex(input %x: f64[b, s, 3, 2], input %a: f64[s, 3], input %c: c128[s, 3]) {
  %z = view_as_complex %x
  %o = constant {dtype=f64, shape=[], values=[1.0]}
  %p = polar %o, %a
  %q = mul %z, %p
  %k = conj %c
  %r = mul %q, %k
  %t = transpose %r {dim0=0, dim1=1}
  %u = add %t, %t
  %v = view_as_real %u
  %w = mul %v, %v
  %l = sum %w {dims=[0, 1, 2, 3]}
  output "loss" %l
  output "u" %u
})",
       {{"b", 2}, {"s", 2}}},
      {"dropout",
       R"(graph @dropout(input %x: f64[n, 4], state %rng: i64[2]) {
  %d = dropout %x, %rng {p=0.25, stream=0}
  %e = sigmoid %d
  %f = logsumexp %e {dim=1}
  %l = sum %f {dims=[0]}
  %one = constant {dtype=i64, shape=[2], values=[0.0, 1.0]}
  %next = add %rng, %one
  output "loss" %l
  update %rng <- %next
})",
       {{"n", 6}}},
      {"einsum",
       R"(graph @einsum(input %a: f64[n, q, h, 3], input %b: f64[n, k, h, 3], input %z: f64[4, 4]) {
  %s = einsum %a, %b {equation="nqhd,nkhd->nhqk"}
  %t = permute %s {dims=[0, 2, 1, 3]}
  %c = contiguous %t
  %v = reshape %c {shape=[n, q, h*k]}
  %d = diagonal %z {dim0=0, dim1=1}
  %e = sum %d {dims=[0]}
  %w = mul %v, %e
  %x = tanh %w
  %l = sum %x {dims=[0, 1, 2]}
  output "loss" %l
})",
       {{"n", 2}, {"q", 3}, {"k", 2}, {"h", 2}}},
  };
  return all;
}

}  // namespace lathe::ir::test
