#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

#include "ir/tensor/builder.h"
#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

/// The state of building one random graph. The steps are grouped by family: maker_elementwise.cpp, maker_shapes.cpp,
/// maker_blocks.cpp, maker_loops.cpp. A step returns nothing if its picks do not fit; it does not rely on an op
/// rejecting them.
class GraphMaker {
 public:
  GraphMaker(unsigned seed, const GraphKind& kind);
  Case run();

 private:
  using Value = ir::Value;
  using Maybe = std::optional<Value>;

  struct Item {
    Value value;
    bool exact;  ///< every way to compute it gives the same bits
  };

  /// Values of the graph, and elements of a second sequence, that the body of a loop reads.
  struct LoopCaptures {
    Maybe addend = {}, weight = {}, sequence = {};
  };

  // Choices.
  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  bool one_in(int count) { return below(count) == 0; }
  template <class T>
  const T& any_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
  }
  int any_dim(const Value& a) { return below(a.rank()); }
  Dim late(const char* name) const;  ///< a symbolic dim, or its size
  Dim any_size();
  DType other_float();
  std::vector<std::int64_t> any_dims(const Value& a);

  // Values so far; later ones are picked more often, so that chains grow.
  template <class Fits>
  Maybe pick(Fits fits);
  Value pick_float();                    ///< of the graph's float dtype
  Maybe pick_like(const Value& a);       ///< of a's dtype, broadcast with it
  Maybe pick_same(const Value& a);       ///< of a's dtype and shape
  Maybe pick_steady(const Value* like);  ///< a value that may be read by a discontinuous op, broadcast with `like`
  Maybe pick_kind(bool (*kind)(DType));
  bool exact(const Value& a) const;
  bool small(const Shape& shape) const;  ///< with every binding
  bool keep(const Maybe& made);          ///< adds it to the pool, if it fits

  // Adds a value.
  Maybe step();
  Maybe unary();
  Maybe binary();
  Maybe integer();
  Maybe truth();
  Maybe conversion();
  Value to_integer(const Value& a);
  Maybe source();
  Maybe rounded_constant();
  Maybe integer_extreme();
  Maybe rounded_once();
  Maybe view_of(const Value& a);
  Maybe reshaped(const Value& a);
  Maybe sliced(const Value& a);
  Maybe windows_of(const Value& a);
  Maybe reduction(const Value& a);
  Maybe triangular(const Value& a);
  Maybe joined(const Value& a);
  Maybe indexed(const Value& a);
  Maybe product();
  Maybe convolution(const Value& a);
  Maybe loop_over(const Value& a);
  LoopCaptures loop_captures(const Value& a, const Shape& rest);
  Value next_carry(const Value& h, const Value& x, const LoopCaptures& captured);
  Value inner_loop(ir::GraphBuilder& around, const Value& h, const Value& x);
  Maybe einsum_of(const Value& a, const Value& b);
  Maybe normalized(const Value& a);
  Maybe masked(const Value& a);
  Maybe complex_of(const Value& a);
  Maybe training_loss(const Value& logits);
  Maybe attention_block();
  Value scores_masked(const Value& scores, int& masks);
  Value query_offset(const Value& q, const Value& k);
  Value attention_composite(const Value& q, const Value& k, const Value& v, double scale);
  Value attention_of_primitives(const Value& q, const Value& k, const Value& v);

  void add_arguments();
  void finish();

  unsigned seed_;
  int ops_;
  bool wide_, scaled_, known_ = false;  ///< known: the sizes of wide graphs are static
  bool has_eigenvectors_ = false;
  std::mt19937 random_;
  ir::GraphBuilder builder_;
  DType real_ = f64;
  int part_, width_;  ///< of one head; of two, which most rows have
  std::vector<DimBindings> sizes_;
  std::vector<Item> pool_;
  std::vector<Value> indices_;  ///< i64 arguments, 0 .. top_integer; the last one is a scalar
  Maybe random_state_;
};

/// NumPy's rule, decided by names, so that no run-time check remains.
bool broadcasts(const Shape& a, const Shape& b);
/// The same, to the shape of b.
bool broadcasts_into(const Shape& a, const Shape& b);

template <class Fits>
GraphMaker::Maybe GraphMaker::pick(Fits fits) {
  const int size = static_cast<int>(pool_.size());
  for (int tries = 0; tries < 24; ++tries) {
    const Item& item = pool_[static_cast<std::size_t>(std::max(below(size), below(size)))];
    if (fits(item)) return item.value;
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
