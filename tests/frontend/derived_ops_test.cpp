#include "frontend/ops/derived_ops.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/texts/error_label.h"

/// Functions that are composed of other ops.
using namespace lathe;

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

/// Returns the elements of what a function returns for x [2, 3].
std::vector<double> results(const std::function<Tensor(const Graph& g, const Tensor& x)>& make,
                            const std::vector<double>& x = {1, -2, 3, 4.5, 0, -6}) {
  Graph g{"derived"};
  const Tensor in = g.input("x", f64, {Dim("n", 2), 3});
  g.output("y", make(g, in));
  const HostTensor y = ir::interpret(g.finish(), {{"x", HostTensor::from({2, 3}, x, f64)}}).at("y");
  std::vector<double> elements;
  for (std::int64_t i = 0; i < y.numel(); ++i) elements.push_back(y.get(i));
  return elements;
}

using List = std::vector<double>;

/// Checks that both forms of a function return the same numbers for x > 0.
using Form = std::function<Tensor(const Graph& g, const Tensor& x)>;
void same(const Form& method, const Form& function) {
  const List positive{1, 2, 3, 4.5, 0.25, 6};
  const List found = results(method, positive);
  CHECK(found == results(function, positive));
  CHECK(!found.empty());
}

}  // namespace

TEST_CASE("derived ops: reductions", "[derived]") {
  CHECK(results([](auto&, auto& x) { return sum(x, 1); }) == List{2, -1.5});
  CHECK(results([](auto&, auto& x) { return mean(x, 0); }) == List{2.75, -1, -1.5});
  CHECK(results([](auto&, auto& x) { return max(x); }) == List{4.5});
  CHECK(results([](auto&, auto& x) { return min(x, 1, true); }) == List{-2, -6});
  CHECK(results([](auto&, auto& x) { return var(x, 1); })[0] == Approx(19.0 / 3));
  CHECK(results([](auto&, auto& x) { return logsumexp(x, 1); })[1] ==
        Approx(std::log(std::exp(4.5) + 1 + std::exp(-6))));
  CHECK(results([](auto&, auto& x) { return argmax(x, 1); }) == List{2, 0});
  CHECK(results([](auto&, auto& x) { return argmin(x, -1); }) == List{1, 2});
  CHECK(results([](auto&, auto& x) { return any(x > 4, 1); }) == List{0, 1});
  CHECK(results([](auto&, auto& x) { return all(x > -3, 1); }) == List{1, 0});
  CHECK(results([](auto&, auto& x) { return any(x.slice(1, 0, 0) > 0); }) == List{0});
  CHECK(results([](auto&, auto& x) { return all(x.slice(1, 0, 0) > 0); }) == List{1});
  CHECK(results([](auto&, auto& x) { return norm(x, 1); })[0] == Approx(std::sqrt(14.0)));
  CHECK(results([](auto&, auto& x) { return norm(normalize(x), 1); })[1] == Approx(1));
  CHECK(results([](auto&, auto& x) { return normalize(x * 0.0); }) == List{0, 0, 0, 0, 0, 0});
}

TEST_CASE("derived ops: element-wise", "[derived]") {
  CHECK(results([](auto&, auto& x) { return ceil(x * 0.5); }) == List{1, -1, 2, 3, 0, -3});
  const List odd{quiet_nan, infinity, -infinity, 0, 1, -1};
  CHECK(results([](auto&, auto& x) { return isnan(x); }, odd) == List{1, 0, 0, 0, 0, 0});
  CHECK(results([](auto&, auto& x) { return isfinite(x); }, odd) == List{0, 0, 0, 1, 1, 1});
  CHECK(results([](auto&, auto& x) { return maximum(0, x); }) == List{1, 0, 3, 4.5, 0, 0});
  CHECK(results([](auto&, auto& x) { return minimum(0, x); }) == List{0, -2, 0, 0, 0, -6});
  CHECK(results([](auto&, auto& x) { return pow(2, x); })[1] == 0.25);
  CHECK(results([](auto&, auto& x) { return 0 < x; }) == List{1, 0, 1, 1, 0, 0});
  CHECK(results([](auto&, auto& x) { return 0 <= x; }) == List{1, 0, 1, 1, 1, 0});
  CHECK(results([](auto&, auto& x) { return 0 > x; }) == List{0, 1, 0, 0, 0, 1});
  CHECK(results([](auto&, auto& x) { return 0 >= x; }) == List{0, 1, 0, 0, 1, 1});
  CHECK(results([](auto&, auto& x) { return 0 == x; }) == List{0, 0, 0, 0, 1, 0});
  CHECK(results([](auto&, auto& x) { return 0 != x; }) == List{1, 1, 1, 1, 0, 1});
  CHECK(results([](auto&, auto& x) {
          Tensor y = x;
          y += x;
          y *= y;
          y -= x;
          y /= x;
          return y;
        })[2] == 11);
  CHECK(results([](auto&, auto& x) {
          Tensor y = x;
          y += 1;
          y *= 2.0;
          y -= 4;
          y /= 0.5F;
          return y;
        }) == List{0, -12, 8, 14, -4, -28});
}

TEST_CASE("derived ops: shapes", "[derived]") {
  CHECK(results([](auto&, auto& x) { return zeros_like(x); }) == List(6, 0));
  CHECK(results([](auto&, auto& x) { return ones_like(x); }) == List(6, 1));
  CHECK(results([](auto&, auto& x) { return flip(x, 1); }) == List{3, -2, 1, -6, 0, 4.5});
  CHECK(results([](auto&, auto& x) { return flip(x, 0); }) == List{4.5, 0, -6, 1, -2, 3});
  CHECK(results([](auto&, auto& x) { return roll(x, 1, 1); }) == List{3, 1, -2, -6, 4.5, 0});
  CHECK(results([](auto&, auto& x) { return roll(x, 1, 0); }) == List{4.5, 0, -6, 1, -2, 3});
  CHECK(results([](auto&, auto& x) { return roll(x, -1, 1); }) == List{-2, 3, 1, 0, -6, 4.5});
  CHECK(results([](auto&, auto& x) { return roll(x, 7, 1); }) == List{3, 1, -2, -6, 4.5, 0});
  CHECK(results([](auto&, auto& x) { return roll(x, -8, -1); }) == List{3, 1, -2, -6, 4.5, 0});
  CHECK(results([](auto&, auto& x) { return roll(x, 6, 1); }) == List{1, -2, 3, 4.5, 0, -6});
  CHECK(results([](auto&, auto& x) { return roll(x.slice(1, 0, 0), 2, 1); }).empty());
  CHECK(results([](auto&, auto& x) { return outer(x.select(0, 0), x.select(0, 1)); })[1] == 0);
  CHECK(results([](auto&, auto& x) { return x.slice(1, 1); }) == List{-2, 3, 0, -6});
  CHECK(results([](auto&, auto& x) { return x.split({1, 2}, 1)[1]; }) == List{-2, 3, 0, -6});
  CHECK(results([](auto& g, auto&) { return g.eye(2, f64); }) == List{1, 0, 0, 1});
  CHECK(results([](auto& g, auto&) { return g.zeros({2}, f64) + g.ones({2}, f64); }) == List{1, 1});
  CHECK(test::error_label([] { results([](auto&, auto& x) { return x.split({1, 1}, 1)[0]; }); }) == "split_size");
  CHECK(test::error_label([] { results([](auto&, auto& x) { return x.split({-1, 4}, 1)[0]; }); }) == "split_size");
}

TEST_CASE("a roll of an unknown size takes negative shifts", "[derived]") {
  Graph g{"unknown"};
  g.output("y", roll(g.input("x", f64, {Dim("n")}), -2, 0));
  const HostTensor y = ir::interpret(g.finish(), {{"x", HostTensor::from({5}, {0, 1, 2, 3, 4}, f64)}}).at("y");
  CHECK(y.values() == List{2, 3, 4, 0, 1});
}

TEST_CASE("a slice that starts or ends before the first element is an error", "[derived]") {
  CHECK(results([](auto&, auto& x) { return x.slice(1, -3, -1); }) == List{1, -2, 4.5, 0});
  CHECK(test::error_label([] { results([](auto&, auto& x) { return x.slice(1, -4); }); }) == "slice_range");
  CHECK(test::error_label([] { results([](auto&, auto& x) { return x.slice(1, 0, -5); }); }) == "slice_range");
}

TEST_CASE("integers: the smallest one has a position, and all are finite", "[derived]") {
  Graph g{"integers"};
  const Tensor x = g.input("x", i64, {3});
  g.output("smallest", x.argmin(0));
  g.output("finite", x.isfinite());
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  const Tensors found = ir::interpret(g.finish(), {{"x", HostTensor::of<std::int64_t>({3}, {0, lowest, 5})}});
  CHECK(found.at("smallest").item() == 1);
  CHECK(found.at("finite").values() == List{1, 1, 1});
}

TEST_CASE("derived ops: networks", "[derived]") {
  const List normed = results([](auto&, auto& x) { return layer_norm(x); });
  CHECK(normed[0] + normed[1] + normed[2] == Approx(0).margin(1e-12));
  Graph dropping{"dropping"};
  const Tensor in = dropping.input("x", f32, {64});
  dropping.output("y", dropout(in, 0.5));
  const ir::Graph drops = dropping.finish();
  Tensors arguments = initial_values(drops, {}, 0);
  arguments.set("x", HostTensor::from({64}, List(64, 1), f32));
  const HostTensor dropped = ir::interpret(drops, arguments).at("y");
  int zeros = 0;
  for (std::int64_t i = 0; i < 64; ++i) zeros += dropped.get(i) == 0 ? 1 : 0;
  CHECK((zeros > 16 && zeros < 48));
  const auto plain = [](const Graph&, const Tensor& x) { return attention(x, x, x); };
  const auto full = [](const Graph&, const Tensor& x) {
    return attention(x, x, x, std::nullopt, 1 / std::sqrt(3.0), false);
  };
  CHECK(results(plain) == results(full));
  const auto causal = [](const Graph&, const Tensor& x) { return attention(x, x, x, true); };
  CHECK(results(causal)[0] == 1);
  Graph g{"unknown"};
  const Tensor x = g.input("x", f32, {2, Dim("d")});
  CHECK(test::error_label([&] { attention(x, x, x); }) == "attention_scale");
}

TEST_CASE("derived ops: gradients, at the caller's line", "[derived]") {
  Graph g{"gradients"};
  const Tensor x = g.input("x", f64, {2, 3});
  g.output("dx", grad(sum(normalize(x) * roll(flip(x, 1), 1, 1)), {x})[0]);
  const ir::Graph graph = g.finish();
  for (const ir::ValueId id : ir::all_values(graph))
    if (graph[id].loc.known()) CHECK(graph[id].loc.file().find("derived_ops_test.cpp") != std::string::npos);
}

TEST_CASE("derived ops: the gradients of norms at zeros are those of torch", "[derived]") {
  const List row_of_zeros{0, 0, 0, 3, 0, 4};
  const auto of_norm = [](const Graph&, const Tensor& x) { return grad(norm(x, 1).sum(), {x})[0]; };
  const List of_rows = results(of_norm, row_of_zeros);
  CHECK(List(of_rows.begin(), of_rows.begin() + 3) == List{0, 0, 0});
  CHECK(of_rows[3] == Approx(0.6));
  CHECK(of_rows[5] == Approx(0.8));
  const auto of_normalize = [](const Graph&, const Tensor& x) { return grad(normalize(x, 1, 0.5).sum(), {x})[0]; };
  const List found = results(of_normalize, row_of_zeros);
  CHECK(List(found.begin(), found.begin() + 3) == List{2, 2, 2});
  CHECK(found[3] == Approx((1 - 0.6 * 1.4) / 5));
}

TEST_CASE("methods are second forms of functions", "[derived]") {
#define LATHE_SAME(name) same([](auto&, auto& x) { return x.name(); }, [](auto&, auto& x) { return name(x); })
  LATHE_SAME(abs), LATHE_SAME(sign), LATHE_SAME(floor), LATHE_SAME(ceil), LATHE_SAME(round), LATHE_SAME(trunc);
  LATHE_SAME(exp), LATHE_SAME(expm1), LATHE_SAME(log), LATHE_SAME(log1p), LATHE_SAME(sqrt), LATHE_SAME(rsqrt);
  LATHE_SAME(square), LATHE_SAME(reciprocal), LATHE_SAME(sin), LATHE_SAME(cos), LATHE_SAME(tanh), LATHE_SAME(erf);
  LATHE_SAME(sigmoid), LATHE_SAME(softplus), LATHE_SAME(relu), LATHE_SAME(gelu), LATHE_SAME(silu), LATHE_SAME(prod);
  LATHE_SAME(norm), LATHE_SAME(isnan), LATHE_SAME(isfinite), LATHE_SAME(tril), LATHE_SAME(triu), LATHE_SAME(argsort);
#undef LATHE_SAME
  same([](auto&, auto& x) { return x.argmin(1); }, [](auto&, auto& x) { return argmin(x, 1); });
  same([](auto&, auto& x) { return (x > 2).any(1); }, [](auto&, auto& x) { return any(x > 2, 1); });
  same([](auto&, auto& x) { return (x > 2).all(1); }, [](auto&, auto& x) { return all(x > 2, 1); });
  same([](auto&, auto& x) { return x.clamp(1, 3); }, [](auto&, auto& x) { return clamp(x, 1, 3); });
  same([](auto&, auto& x) { return x.maximum(2); }, [](auto&, auto& x) { return maximum(x, 2); });
  same([](auto&, auto& x) { return x.minimum(x * x); }, [](auto&, auto& x) { return minimum(x, x * x); });
  same([](auto&, auto& x) { return x.pow(x); }, [](auto&, auto& x) { return pow(x, x); });
  same([](auto&, auto& x) { return x.where(x > 2, 0); }, [](auto&, auto& x) { return where(x > 2, x, 0); });
  same([](auto&, auto& x) { return x.cumsum(1); }, [](auto&, auto& x) { return cumsum(x, 1); });
  same([](auto&, auto& x) { return x.flip(1); }, [](auto&, auto& x) { return flip(x, 1); });
  same([](auto&, auto& x) { return x.roll(1, 1); }, [](auto&, auto& x) { return roll(x, 1, 1); });
  same([](auto&, auto& x) { return x[0].outer(x[1]); }, [](auto&, auto& x) { return outer(x[0], x[1]); });
  same([](auto&, auto& x) { return x.sort(1, true).values; }, [](auto&, auto& x) { return sort(x, 1, true).values; });
  same([](auto&, auto& x) { return x.top_k(2).indices; }, [](auto&, auto& x) { return top_k(x, 2).indices; });
}

TEST_CASE("methods of shapes and indices are second forms of functions", "[derived]") {
  same([](auto&, auto& x) { return x.view({6}); }, [](auto&, auto& x) { return view(x, {6}); });
  same([](auto&, auto& x) { return x.reshape({3, 2}); }, [](auto&, auto& x) { return reshape(x, {3, 2}); });
  same([](auto&, auto& x) { return x.transpose(0, 1); }, [](auto&, auto& x) { return transpose(x, 0, 1); });
  same([](auto&, auto& x) { return x.permute({1, 0}); }, [](auto&, auto& x) { return permute(x, {1, 0}); });
  same([](auto&, auto& x) { return x.unsqueeze(0).expand({2, 2, 3}); },
       [](auto&, auto& x) { return expand(unsqueeze(x, 0), {2, 2, 3}); });
  same([](auto&, auto& x) { return x.slice(1, 0, 1).squeeze(1); },
       [](auto&, auto& x) { return squeeze(x.slice(1, 0, 1), 1); });
  same([](auto&, auto& x) { return x.flatten(0, 1); }, [](auto&, auto& x) { return flatten(x, 0, 1); });
  same([](auto&, auto& x) { return x.select(1, -1); }, [](auto&, auto& x) { return select(x, 1, -1); });
  same([](auto&, auto& x) { return x.split(2, 1)[1]; }, [](auto&, auto& x) { return split(x, 2, 1)[1]; });
  same([](auto&, auto& x) { return x.split({1, 2}, 1)[1]; }, [](auto&, auto& x) { return split(x, {1, 2}, 1)[1]; });
  same([](auto&, auto& x) { return x.slice(1, 0, 3, 2); }, [](auto&, auto& x) { return slice(x, 1, 0, 3, 2); });
  same([](auto&, auto& x) { return x.slice(1, -2); }, [](auto&, auto& x) { return slice(x, 1, -2); });
  same([](auto&, auto& x) { return x.detach(); }, [](auto&, auto& x) { return detach(x); });
  same([](auto&, auto& x) { return x.unfold(1, {.size = 2}); },
       [](auto&, auto& x) { return unfold(x, 1, {.size = 2}); });
  const auto order = [](const Graph& g) { return g.literal({1, 3}, {1, 0, 1}, i64); };
  same([&](auto& g, auto& x) { return x.gather(order(g)[0], 1); },
       [&](auto& g, auto& x) { return gather(x, order(g)[0], 1); });
  same([&](auto& g, auto& x) { return x.take_along(order(g), 0); },
       [&](auto& g, auto& x) { return take_along(x, order(g), 0); });
  same([&](auto& g, auto& x) { return x.scatter(order(g), x[1].unsqueeze(0), 0); },
       [&](auto& g, auto& x) { return scatter(x, order(g), x[1].unsqueeze(0), 0); });
  same([&](auto& g, auto& x) { return x.update_rows(order(g)[0].slice(0, 0, 2), x); },
       [&](auto& g, auto& x) { return update_rows(x, order(g)[0].slice(0, 0, 2), x); });
  const auto bits = [](const Tensor& x) { return (x * 4).to(i64); };
  same([&](auto&, auto& x) { return bits(x).bitwise_and(bits(x) - 3); },
       [&](auto&, auto& x) { return bitwise_and(bits(x), bits(x) - 3); });
  same([&](auto&, auto& x) { return bits(x).bitwise_or(bits(x) - 3); },
       [&](auto&, auto& x) { return bitwise_or(bits(x), bits(x) - 3); });
  same([&](auto&, auto& x) { return bits(x).bitwise_xor(bits(x) - 3); },
       [&](auto&, auto& x) { return bitwise_xor(bits(x), bits(x) - 3); });
  same([&](auto&, auto& x) { return bits(x).bitwise_not(); }, [&](auto&, auto& x) { return bitwise_not(bits(x)); });
  same([](auto&, auto& x) { return view_as_real(view_as_complex(x.slice(1, 0, 2)).conj()); },
       [](auto&, auto& x) { return view_as_real(conj(view_as_complex(x.slice(1, 0, 2)))); });
  same([](auto&, auto& x) { return x.chunk(3, 1)[2]; }, [](auto&, auto& x) { return chunk(x, 3, 1)[2]; });
  same([](auto&, auto& x) { return x.slice(1, 0, 2).diagonal(); },
       [](auto&, auto& x) { return diagonal(x.slice(1, 0, 2)); });
  same([](auto&, auto& x) { return x.repeat_interleave(2, 1); },
       [](auto&, auto& x) { return repeat_interleave(x, 2, 1); });
}

TEST_CASE("an index selects a row, a tensor of indices gathers rows", "[derived]") {
  CHECK(results([](auto&, auto& x) { return x[0]; }) == List{1, -2, 3});
  CHECK(results([](auto&, auto& x) { return x[-1]; }) == List{4.5, 0, -6});
  CHECK(results([](auto&, auto& x) { return x[x.size(0) - 1][1]; }) == List{0});
  CHECK(results([](auto& g, auto& x) { return x[g.literal({3}, {1, 0, 1}, i64)]; }) ==
        List{4.5, 0, -6, 1, -2, 3, 4.5, 0, -6});
}

TEST_CASE("trunc rounds towards 0", "[derived]") {
  CHECK(results([](auto&, auto& x) { return trunc(x * 0.5); }) == List{0, -1, 1, 2, 0, -3});
}

TEST_CASE("operators on bits: integers bit by bit, bools logically", "[derived]") {
  const auto whole = [](auto& x) { return x.trunc().to(i64); };  // 1, -2, 3, 4, 0, -6
  CHECK(results([&](auto&, auto& x) { return whole(x) & 6; }) == List{0, 6, 2, 4, 0, 2});
  CHECK(results([&](auto&, auto& x) { return whole(x) | 1; }) == List{1, -1, 3, 5, 1, -5});
  CHECK(results([&](auto&, auto& x) { return whole(x) ^ whole(x); }) == List(6, 0));
  CHECK(results([&](auto&, auto& x) { return ~whole(x); }) == List{-2, 1, -4, -5, -1, 5});
  CHECK(results([&](auto&, auto& x) { return whole(x) << 2; }) == List{4, -8, 12, 16, 0, -24});
  CHECK(results([&](auto&, auto& x) { return whole(x).abs() % 3; }) == List{1, 2, 0, 1, 0, 0});
  CHECK(results([&](auto&, auto& x) {
          Tensor y = whole(x);
          y |= 1;
          y ^= 3;
          y &= 6;
          return y;
        }) == List{2, 4, 0, 6, 2, 0});
  CHECK(results([&](auto&, auto& x) { return whole(x) >> whole(x).abs(); }) == List{0, -1, 0, 0, 0, -1});
  CHECK(results([](auto&, auto& x) { return (x > 0) ^ (x > 2); }) == List{1, 0, 0, 0, 0, 0});
  CHECK(results([](auto&, auto& x) { return (x > 0) & ~(x > 2); }) == List{1, 0, 0, 0, 0, 0});
  CHECK(results([&](auto&, auto& x) {
          Tensor y = whole(x);
          y &= whole(x);
          y |= whole(x) << 1;
          y ^= whole(x);
          return y;
        })[0] == 2);
}

TEST_CASE("triangular systems: the solution of a symmetric one", "[derived]") {
  const List found = results([](auto&, auto& x) {
    const Tensor a = matmul(x, x.transpose(0, 1)), factor = cholesky(a);
    const Tensor half = solve_triangular(factor, x), solution = solve_triangular(factor, half, {.transpose = true});
    return matmul(a, solution);
  });
  const List expected{1, -2, 3, 4.5, 0, -6};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-12));
}

TEST_CASE("qr and eigh: factors of matrices", "[derived]") {
  const auto check = [](const List& found, const List& expected) {
    REQUIRE(found.size() >= expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-12));
  };
  const List x{1, -2, 3, 4.5, 0, -6};
  check(results([](auto&, auto& a) {
          const QR factors = qr(a.transpose(0, 1));
          return matmul(factors.q, factors.r).transpose(0, 1);
        }),
        x);
  check(results([](auto&, auto& a) {
          const Eigen eigen = eigh(matmul(a, a.transpose(0, 1)));
          return matmul(eigen.vectors * eigen.values, eigen.vectors.transpose(0, 1));
        }),
        {14, -13.5, -13.5, 56.25});
  check(results([](auto&, auto& a) { return eigh(matmul(a.transpose(0, 1), a)).values; }), {0});
}
