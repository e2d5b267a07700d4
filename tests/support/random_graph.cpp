#include "tests/support/random_graph.h"

#include <functional>
#include <numeric>
#include <random>

#include "ir/ops/functional.h"
#include "ir/ops/list.h"

namespace lathe::ir::test {

namespace {

class Generator {
 public:
  Generator(unsigned seed, int ops) : random_(seed), builder_("random"), ops_(ops) {}

  Graph run() {
    const Dim n("n"), m("m");
    for (const Shape& shape : {Shape{n, m}, Shape{m, 4}, Shape{n, m, 4}, Shape{4}, Shape{2, 1, 4}, Shape{m, m}})
      pool_.push_back(builder_.argument(ops::input, "x" + std::to_string(pool_.size()), f64, shape));
    index_ = builder_.argument(ops::input, "index", i64, {3});
    while (static_cast<int>(pool_.size()) < ops_ + 6)
      if (const auto value = step(); value && value->rank() <= 4) pool_.push_back(*value);
    finish();
    return builder_.finish();
  }

 private:
  using Maybe = std::optional<Value>;

  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  /// A value; later ones more often, so that chains grow.
  Value pick() {
    const int size = static_cast<int>(pool_.size());
    return pool_[static_cast<std::size_t>(std::max(below(size), below(size)))];
  }

  static bool broadcast(const Shape& a, const Shape& b) {
    for (int k = 1; k <= std::min(a.rank(), b.rank()); ++k) {
      const Dim &x = a[a.rank() - k], &y = b[b.rank() - k];
      if (!(x == y) && !x.is(1) && !y.is(1)) return false;
    }
    return true;
  }

  Maybe step() {
    switch (below(8)) {
      case 0: return unary(pick());
      case 1: return binary(pick(), pick());
      case 2:
      case 3: return view_of(pick());
      case 4: return reduction(pick());
      case 5: return product(pick(), pick());
      case 6: return joined(pick(), pick());
      default: return special(pick(), pick());
    }
  }

  Maybe unary(const Value& a) {
    switch (below(12)) {
      case 0: return neg(a);
      case 1: return tanh(a);
      case 2: return sin(a);
      case 3: return sigmoid(a);
      case 4: return gelu(a);
      case 5: return mul(a, below(2) == 0 ? 1.0 : -1.0);
      case 6: return add(a, below(2) == 0 ? -0.0 : 0.0);
      case 7: return neg(neg(a));
      case 8: return pow(tanh(a), static_cast<double>(1 + below(3)));
      case 9: return cast(gt(a, 0.1), f64);
      case 10: return silu(a);
      default: return stop_gradient(a);
    }
  }

  Maybe binary(const Value& a, const Value& b) {
    if (!broadcast(a.shape(), b.shape())) return std::nullopt;
    switch (below(6)) {
      case 0: return add(a, b);
      case 1: return sub(a, neg(b));
      case 2: return mul(a, tanh(b));
      case 3: return maximum(a, b);
      case 4: return where(logical_not(lt(a, b)), a, b);
      default: return div(a, add(mul(b, b), 1.0));
    }
  }

  Maybe view_of(const Value& a) {
    const int rank = a.rank();
    if (rank == 0) return unsqueeze(a, 0);
    const int d = below(rank), e = below(rank);
    const Dim size = a.shape()[d];
    switch (below(9)) {
      case 0: return transpose(a, d, e);
      case 1: {
        std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
        std::iota(dims.begin(), dims.end(), 0);
        std::shuffle(dims.begin(), dims.end(), random_);
        return permute(a, dims);
      }
      case 2: return unsqueeze(a, below(rank + 1));
      case 3: return size.is(1) ? Maybe(squeeze(a, d)) : std::nullopt;
      case 4: {
        Shape wider = a.shape();
        wider[d] = size.is(1) ? Dim("m") : size;
        return expand(a, wider);
      }
      case 5: return below(2) == 0 ? slice(a, d, 0, size) : slice(a, d, size - Dim(1), size);
      case 6: return reshape(a, {a.shape().numel()});
      case 7: return flatten(a, std::min(d, e), std::max(d, e));
      default: return contiguous(a);
    }
  }

  Maybe reduction(const Value& a) {
    if (a.rank() == 0) return std::nullopt;
    const int d = below(a.rank());
    const bool keepdim = below(2) == 0;
    switch (below(5)) {
      case 0: return sum(a, {d}, keepdim);
      case 1: return max(a, {d}, keepdim);
      case 2: return mean(a, {d}, keepdim);
      case 3: return softmax(a, d);
      default: return rms_norm(a);
    }
  }

  Maybe product(const Value& a, const Value& b) {
    if (a.rank() < 2 || b.rank() < 2) return std::nullopt;
    const Dim inner = a.shape()[a.rank() - 1];
    const bool fits = b.shape()[b.rank() - 2] == inner, fits_turned = b.shape()[b.rank() - 1] == inner;
    if (!fits && !fits_turned) return std::nullopt;
    const Value right = fits ? b : transpose(b, -2, -1);
    const auto leading = [](const Value& v) {
      return Shape(std::vector<Dim>(v.shape().begin(), v.shape().end() - 2));
    };
    if (!broadcast(leading(a), leading(right))) return std::nullopt;
    return mul(matmul(a, right), 0.3);
  }

  Maybe joined(const Value& a, const Value& b) {
    if (a.rank() == 0) return std::nullopt;
    const int d = below(a.rank());
    const Dim size = a.shape()[d];
    const bool same = a.shape() == b.shape();
    const Value parts[] = {a, same ? b : sin(a)};
    switch (below(4)) {
      case 0: return concat(parts, d);
      case 1: {
        const Value low = pad(parts[0], d, 0, size), high = pad(parts[1], d, size, 0);
        return add(low, high);
      }
      case 2: return slice(concat(parts, d), d, below(2) == 0 ? Dim(0) : size, below(2) == 0 ? size : size + size);
      default: return slice(pad(a, d, 1, size), d, 0, size);
    }
  }

  Maybe special(const Value& a, const Value& b) {
    switch (below(5)) {
      case 0: return a.rank() >= 2 ? Maybe(tril(a)) : std::nullopt;
      case 1: return broadcast(a.shape(), b.shape()) ? Maybe(masked_fill(a, lt(b, 0.0), -2.0)) : std::nullopt;
      case 2: return a.rank() >= 1 && a.shape()[0].is(4) ? Maybe(gather(a, *index_, 0)) : std::nullopt;
      case 3: return a.rank() >= 2 && a.shape()[0] == a.shape()[1] ? Maybe(diagonal(a, 0, 1)) : std::nullopt;
      default: return a.rank() >= 1 ? Maybe(log_softmax(a, 0)) : std::nullopt;
    }
  }

  /// tanh bounds what goes into the sum, so that no term drowns the others.
  void finish() {
    std::optional<Value> loss;
    for (std::size_t i = pool_.size() - 3; i < pool_.size(); ++i) {
      builder_.output("y" + std::to_string(i), pool_[i]);
      const Value part = sum(tanh(pool_[i]));
      loss = loss ? add(*loss, part) : part;
    }
    builder_.output("loss", *loss);
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  int ops_;
  std::vector<Value> pool_;
  std::optional<Value> index_;
};

}  // namespace

Graph random_graph(unsigned seed, int ops) { return Generator(seed, ops).run(); }

}  // namespace lathe::ir::test
