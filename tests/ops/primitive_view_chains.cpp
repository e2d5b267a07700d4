#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "ir/ops/rules/view_rules.h"
#include "ir/tensor/analysis/walk.h"
#include "tests/support/graphs/interpreted.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::test::Interpreted;

namespace {

/// Random views of random values; rules may reject them.
class Chain {
 public:
  explicit Chain(unsigned seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  /// Returns a random factorization of `count`, with some sizes of 1.
  Shape factors(std::int64_t count) {
    Shape shape;
    for (int i = 0; i < 4 && (count > 1 || below(2)); ++i) {
      std::int64_t factor = 1;
      for (const std::int64_t f : {2, 2, 3})
        if (count % f == 0 && below(2)) factor *= f, count /= f;
      shape.push_back(Dim(factor));
    }
    if (count > 1) shape.push_back(Dim(count));
    return shape;
  }

  Value step(const Value& a) {
    const int rank = a.rank(), d = rank ? below(rank) : 0;
    switch (rank ? below(8) : 6) {
      case 0: return transpose(a, d, below(rank));
      case 1: {
        const std::int64_t size = *a.shape()[d].value(), start = below(static_cast<int>(size) + 1);
        const std::int64_t stop = start + below(static_cast<int>(size - start) + 1);
        return slice(a, d, start, stop, 1 + below(3));
      }
      case 2: return unsqueeze(a, below(rank + 1));
      case 3: return squeeze(a, d);
      case 4: {
        Shape shape = a.shape();
        if (shape[d].is(1)) shape.set(d, 2);
        return expand(a, shape);
      }
      case 5: return diagonal(a, d, below(rank));
      case 6: return view(a, factors(*a.shape().numel().value()));
      default: return flatten(a, d, std::min(d + 1, rank - 1));
    }
  }

 private:
  std::mt19937 random_;
};

/// Whether the elements of `a`, which are their own positions in memory, have these strides.
bool lies_at(const HostTensor& a, const std::vector<std::int64_t>& strides) {
  if (a.numel() == 0) return true;
  std::int64_t at = 0;
  for (Walk walk(a.shape(), {strides}); !walk.done(); walk.next(), ++at)
    if (a.get_int(at) - a.get_int(0) != static_cast<std::int64_t>(walk.offset(0))) return false;
  return true;
}

std::vector<std::int64_t> numbers(const std::vector<Dim>& dims) {
  std::vector<std::int64_t> result;
  for (const Dim& dim : dims) result.push_back(*dim.value());
  return result;
}

/// Returns the strides that the elements themselves imply.
std::vector<std::int64_t> observed_strides(const HostTensor& a) {
  const Sizes dense = dense_strides(a.shape());
  std::vector<std::int64_t> strides(dense.size(), 0);
  for (std::size_t d = 0; d < dense.size(); ++d)
    if (a.shape()[d] > 1) strides[d] = a.get_int(dense[d]) - a.get_int(0);
  return strides;
}

}  // namespace

TEST_CASE("view chains address the elements given by their strides, and a view is rejected only if none exists") {
  int views = 0, refused = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Interpreted t;
    Chain chain(seed);
    std::vector<std::int64_t> positions(24);
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i);
    Value a = view(t.input(HostTensor::from_ints({24}, positions)), chain.factors(24));
    for (int i = 0; i < 8; ++i) {
      CAPTURE(seed, i, a.type().to_string());
      try {
        const Value b = chain.step(a);
        const bool copied = b.node().op == &ops::reshape && !rules::view_strides(a.type(), b.shape());
        const HostTensor values = t.run(b);
        if (copied) {
          ++refused;
          if (values.numel() > 0) CHECK_FALSE(lies_at(values, observed_strides(values)));
          break;
        }
        ++views;
        CHECK(lies_at(values, numbers(b.type().strides)));
        a = b;
      } catch (const UserError& error) {
        if (error.label() == "view_stride") ++refused;
      }
    }
  }
  CHECK(views > 1000);
  CHECK(refused > 50);
}
