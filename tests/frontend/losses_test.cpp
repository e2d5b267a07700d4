#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <set>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"

using namespace lathe;

namespace {

using Numbers = std::vector<double>;
using Loss = std::function<Tensor(const Tensor&, const Tensor&)>;

HostTensor floats(std::vector<std::int64_t> shape, const Numbers& values) {
  HostTensor tensor(f64, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, values[static_cast<std::size_t>(i)]);
  return tensor;
}

/// A loss of x and y with its gradients; losses that are not scalars are summed.
struct Subject {
  Subject(const HostTensor& x, const HostTensor& y, const Loss& loss) : arguments{{"x", x}, {"y", y}} {
    Graph g{"loss"};
    const auto input = [&](std::string_view name, const HostTensor& like) {
      return g.input(name, like.dtype(), Shape(std::vector<Dim>(like.shape().begin(), like.shape().end())));
    };
    const Tensor a = input("x", x), b = input("y", y);
    const Tensor value = loss(a, b);
    g.output("value", value);
    const Tensor total = value.sum();
    g.output("total", total);
    g.output("grad.x", grad(total, {a})[0]);
    if (is_float(y.dtype())) g.output("grad.y", grad(total, {b})[0]);
    graph = g.finish();
  }

  Numbers value() const {
    const HostTensor found = ir::interpret(graph, arguments).at("value");
    Numbers numbers;
    for (std::int64_t i = 0; i < found.numel(); ++i) numbers.push_back(found.get(i));
    return numbers;
  }

  /// Compares a gradient with central differences.
  void check_gradient(const std::string& of) const {
    const HostTensor slope = ir::interpret(graph, arguments).at("grad." + of);
    constexpr double step = 1e-5;
    for (std::int64_t i = 0; i < slope.numel(); ++i) {
      const auto total = [&](double by) {
        Tensors moved = arguments;
        HostTensor value = moved.at(of);
        value.set(i, value.get(i) + by);
        moved.at(of) = value;
        return ir::interpret(graph, moved).at("total").get(0);
      };
      INFO(of << " " << i);
      CHECK(slope.get(i) == Approx((total(step) - total(-step)) / (2 * step)).margin(1e-7));
    }
  }

  Tensors arguments;
  ir::Graph graph;
};

void check_near(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-12));
}

const HostTensor logits = floats({2, 3}, {0.5, -1, 2, 0, 3, -0.5});
const HostTensor probabilities = floats({2, 3}, {0.2, 0.3, 0.5, 0, 1, 0});
double log_total(double a, double b, double c) { return std::log(std::exp(a) + std::exp(b) + std::exp(c)); }

}  // namespace

TEST_CASE("mse_loss is the squared difference with the requested reduction") {
  const HostTensor x = floats({2, 2}, {1, 2, 3, 4}), y = floats({2}, {0, 1});
  for (const auto& [reduction, expected] : std::vector<std::pair<Reduction, Numbers>>{
           {Reduction::mean, {5}}, {Reduction::sum, {20}}, {Reduction::none, {1, 1, 9, 9}}}) {
    const Subject subject(x, y, [&](auto& a, auto& b) { return mse_loss(a, b, reduction); });
    check_near(subject.value(), expected);
    subject.check_gradient("x");
    subject.check_gradient("y");
  }
}

TEST_CASE("binary_cross_entropy_with_logits does not overflow or lose precision for confident answers") {
  const HostTensor targets = floats({2, 3}, {1, 0, 0.25, 0, 1, 0.5});
  const auto loss = [](auto& a, auto& b) { return binary_cross_entropy_with_logits(a, b, {}, Reduction::none); };
  const Subject subject(logits, targets, loss);
  Numbers expected;
  for (std::int64_t i = 0; i < 6; ++i) {
    const double s = 1 / (1 + std::exp(-logits.get(i))), y = targets.get(i);
    expected.push_back(-y * std::log(s) - (1 - y) * std::log(1 - s));
  }
  check_near(subject.value(), expected);
  subject.check_gradient("x");
  subject.check_gradient("y");
  const Numbers sure = Subject(floats({3}, {-1000, 1000, -40}), floats({3}, {0, 0, 0}), loss).value();
  CHECK(sure[0] == 0);
  CHECK(sure[1] == 1000);
  CHECK(sure[2] == Approx(std::exp(-40.0)));
}

TEST_CASE("the positive weight scales the first term of the binary cross entropy") {
  const HostTensor targets = floats({2, 3}, {1, 0, 0.25, 0, 1, 0.5});
  const Subject subject(logits, targets, [](auto& a, auto& b) {
    return binary_cross_entropy_with_logits(a, b, a.graph().literal({3}, {1, 2, 5}, f64), Reduction::sum);
  });
  double expected = 0;
  for (std::int64_t i = 0; i < 6; ++i) {
    const double s = 1 / (1 + std::exp(-logits.get(i))), y = targets.get(i), w = Numbers{1, 2, 5}[i % 3];
    expected += -w * y * std::log(s) - (1 - y) * std::log(1 - s);
  }
  check_near(subject.value(), {expected});
  subject.check_gradient("x");
  subject.check_gradient("y");
}

TEST_CASE("cross_entropy accepts class probabilities and class indices") {
  const double first = -0.2 * 0.5 + 0.3 * 1 - 0.5 * 2 + log_total(0.5, -1, 2), second = -3 + log_total(0, 3, -0.5);
  const Subject subject(logits, probabilities, [](auto& a, auto& b) { return cross_entropy(a, b); });
  check_near(subject.value(), {(first + second) / 2});
  subject.check_gradient("x");
  subject.check_gradient("y");
  // The probability 1 for a class is the same as its class number, with and without smoothing.
  const HostTensor numbers = HostTensor::from_ints({2}, {2, 1}), same = floats({2, 3}, {0, 0, 1, 0, 1, 0});
  for (const double smoothing : {0.0, 0.1}) {
    const auto loss = [&](auto& a, auto& b) { return cross_entropy(a, b, {}, smoothing); };
    const Subject soft(logits, same, loss);
    check_near(soft.value(), Subject(logits, numbers, loss).value());
    soft.check_gradient("x");
  }
}

TEST_CASE("kl_divergence is computed per row, and classes with zero probability contribute nothing") {
  const auto log_of = [](const Numbers& p) {
    Numbers logs;
    for (const double x : p) logs.push_back(std::log(x));
    return floats({2, 3}, logs);
  };
  const HostTensor q = log_of({0.1, 0.6, 0.3, 0.25, 0.25, 0.5});
  const Subject whole(log_of({0.2, 0.3, 0.5, 0.3, 0.6, 0.1}), q,
                      [](auto& a, auto& b) { return kl_divergence(a, b); });
  const double first = 0.2 * std::log(2) + 0.3 * std::log(0.5) + 0.5 * std::log(0.5 / 0.3);
  const double second = 0.3 * std::log(1.2) + 0.6 * std::log(2.4) + 0.1 * std::log(0.2);
  check_near(whole.value(), {(first + second) / 2});
  whole.check_gradient("x");
  whole.check_gradient("y");
  const Subject partly(log_of({0.2, 0.3, 0.5, 0, 1, 0}), q,
                       [](auto& a, auto& b) { return kl_divergence(a, b, Reduction::none); });
  check_near(partly.value(), {first, std::log(4)});
  partly.check_gradient("y");
  for (const double slope : {3, 5}) {
    const auto i = static_cast<std::int64_t>(slope);
    CHECK(ir::interpret(partly.graph, partly.arguments).at("grad.x").get(i) == 0);
  }
}

TEST_CASE("the padding row of an embedding is looked up but not trained") {
  Graph g{"embedding"};
  const Tensor ids = g.input("ids", i64, {3}), table = g.parameter("table", f64, {4, 2});
  const Tensor rows = embedding(ids, table, 2);
  g.output("rows", rows);
  g.output("slope", grad(square(rows).sum(), {table})[0]);
  const auto found = ir::interpret(g.finish(), {{"ids", HostTensor::from_ints({3}, {1, 2, 1})},
                                                {"table", floats({4, 2}, {0, 0, 3, 4, 5, 6, 0, 0})}});
  for (const auto& [name, expected] : std::vector<std::pair<std::string, Numbers>>{
           {"rows", {3, 4, 5, 6, 3, 4}}, {"slope", {0, 0, 12, 16, 0, 0, 0, 0}}})
    for (std::int64_t i = 0; i < found.at(name).numel(); ++i)
      CHECK(found.at(name).get(i) == expected[static_cast<std::size_t>(i)]);
}

TEST_CASE("scatter_add sums rows of equal index, and a dim can be used as a value") {
  Graph g{"scatter"};
  const Dim n{"n"};
  const Tensor rows = g.input("rows", f64, {n, 2});
  const Tensor at = g.input("at", i64, {n});
  g.output("sums", scatter_add(at, rows, 3));
  g.output("share", rows / g.dim_value(n, f64));
  const auto found = ir::interpret(
      g.finish(), {{"rows", floats({3, 2}, {1, 2, 3, 4, 5, 6})}, {"at", HostTensor::from_ints({3}, {2, 0, 2})}});
  const Numbers sums{3, 4, 0, 0, 6, 8};
  for (std::int64_t i = 0; i < 6; ++i) {
    CHECK(found.at("sums").get(i) == sums[static_cast<std::size_t>(i)]);
    CHECK(found.at("share").get(i) == Approx(static_cast<double>(i + 1) / 3));
  }
}

TEST_CASE("every call and every run draws new random tensors") {
  Graph g{"random"};
  const Dim n{"n"};
  (void)g.input("like", f64, {n});
  g.output("a", g.random_uniform({n}, f64, {.low = -2, .high = 6}));
  g.output("b", g.random_uniform({n}, f64, {.low = -2, .high = 6}));
  g.output("normal", g.random_normal({n}, f64, {.mean = 5, .deviation = 0.5}));
  const ir::Graph graph = g.finish();
  Tensors arguments{{"like", HostTensor(f64, {4000})}, {"rng", HostTensor::from_ints({2}, {7, 0})}};
  const Tensors first = ir::interpret(graph, arguments);
  arguments.at("rng") = first.at("rng");
  const Tensors second = ir::interpret(graph, arguments);
  CHECK(second.at("rng").get_int(1) == 2);
  std::set<double> drawn;
  double sum = 0, normal = 0, squares = 0;
  for (std::int64_t i = 0; i < 4000; ++i) {
    for (const double x : {first.at("a").get(i), first.at("b").get(i), second.at("a").get(i)}) {
      CHECK((x >= -2 && x < 6));
      drawn.insert(x);
      sum += x;
    }
    normal += first.at("normal").get(i);
    squares += std::pow(first.at("normal").get(i) - 5, 2);
  }
  CHECK(drawn.size() > 11900);
  CHECK(sum / 12000 == Approx(2).margin(0.1));
  CHECK(normal / 4000 == Approx(5).margin(0.05));
  CHECK(squares / 4000 == Approx(0.25).margin(0.05));
}
