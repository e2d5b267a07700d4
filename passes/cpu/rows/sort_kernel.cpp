#include <optional>

#include "ir/ops/primitives/primitives.h"
#include "passes/cpu/cpu_kernels.h"
#include "passes/lowering/operands/along_dim.h"

namespace lathe::cpu {

using kernel::Value;
using kernel::Var;
using Scope = ElementwiseEmitter::Scope;

namespace {

// Work in scalar operations; rough.
constexpr std::int64_t sorted_element_work = 64;                       // sorting, per element
constexpr std::int64_t top_k_element_work = 4, top_k_taken_work = 32;  // top_k: per element, and per selected element

constexpr int index_bits = 63;

/// Ranks one row per task, with its elements and their positions in per-thread scratch.
class RowRanking {
 public:
  RowRanking(const CpuContext& lowering, ir::ValueId id, std::string_view name, KernelRole role)
      : lowering_(lowering),
        along_(lowering, id),
        descending_(ranks_descending(along_.node)),
        context_(std::string(name), role),
        b_(context_.builder),
        out_(lowering.buffer_of(id)),
        compute_(compute_type(lowering.graph[along_.node.operands[0]].type.dtype)),
        lanes_(along_.post.empty() ? program_lanes(along_.operand.program, lowering.vectors()) : 1) {}

 protected:
  /// Allocates scratch for this many elements and positions, and declares the parameters.
  void declare(const Dim& scratch) {
    const int keys = lowering_.scratch(compute_, scratch, "elements in order"),
              positions = lowering_.scratch(i64, scratch, "positions in order");
    declare_buffers(context_, {&along_.operand.program}, lowering_);
    context_.declare(keys, compute_, true, true);
    context_.declare(positions, i64, true, true);
    context_.declare(out_, i64, false, true);
    keys_ = context_.buffer(keys);
    positions_ = context_.buffer(positions);
    elements_.emplace(context_, along_.operand.program, lowering_.buffer_of);
    size_ = context_.dim(along_.size);
    columns_ = context_.dim(along_.columns);
  }

  /// Returns the elements of a row from t on.
  Value elements(Value row, Value t, int lanes, Value mask = {}) {
    std::vector<IndexGroup> groups = {{along_.pre, row / columns_, 1}, {{along_.dim}, t, lanes}};
    if (!along_.post.empty()) groups.push_back({along_.post, row % columns_, 1});
    Scope scope(*elements_, std::move(groups), mask);
    return b_.broadcast(elements_->emit(along_.operand.result, scope), lanes);
  }

  /// Returns the position of result t of a row that has `count` results.
  Value result_at(Value row, Value t, Value count) {
    return (row / columns_ * count + t) * columns_ + row % columns_;
  }

  Value before(Value x, Value y) { return ranks_before(b_, x, y, descending_); }
  Dim tasks() const { return along_.rows * along_.columns; }

  const CpuContext& lowering_;
  AlongDim along_;
  bool descending_;
  KernelContext context_;
  kernel::Builder& b_;
  int out_;
  DType compute_;
  int lanes_;
  kernel::Buffer keys_, positions_;
  std::optional<ElementwiseEmitter> elements_;
  Value size_, columns_;
};

/// argsort: a bottom-up merge sort. Runs are in one half of the scratch and are merged into the other half.
class MergeSort : RowRanking {
 public:
  MergeSort(const CpuContext& lowering, ir::ValueId id) : RowRanking(lowering, id, "argsort", KernelRole::sort) {}

  KernelContext::Built run() {
    declare(along_.size * Dim(2));
    b_.parallel_for(0, context_.dim(tasks()), 1, [&](Value row) {
      vector_loop(b_, b_.index(0), size_, lanes_, [&](Value t, Value mask) {
        b_.store(keys_, t, elements(row, t, lanes_, mask), mask);
        b_.store(positions_, t, lanes_ == 1 ? t : b_.ramp(t, lanes_), mask);
      });
      const Var from = b_.var(b_.index(0)), width = b_.var(b_.index(1));
      b_.for_loop(0, index_bits, 1, [&](Value) {
        b_.if_(b_.get(width) < size_, [&] {
          const Value here = b_.get(width), source = b_.get(from), target = size_ - source;
          b_.for_loop(0, size_, here * 2, [&](Value first) {
            const Value middle = kernel::min(first + here, size_);
            merge(source, target, first, middle, kernel::min(middle + here, size_));
          });
          b_.set(from, target);
          b_.set(width, here * 2);
        });
      });
      b_.for_loop(0, size_, 1, [&](Value t) {
        b_.store(context_.buffer(out_), result_at(row, t, size_), b_.load(positions_, b_.get(from) + t));
      });
    });
    auto built = context_.finish();
    built.launch.work = along_.size * Dim(sorted_element_work);
    return built;
  }

 private:
  /// Merges the runs [first, middle) and [middle, end). Of equal elements, the one of the left run goes first.
  void merge(Value source, Value target, Value first, Value middle, Value end) {
    const Var left = b_.var(first), right = b_.var(middle);
    b_.for_loop(first, end, 1, [&](Value to) {
      const Value i = b_.get(left), j = b_.get(right);
      const Value at_left = source + kernel::min(i, size_ - 1), at_right = source + kernel::min(j, size_ - 1);
      const Value x = b_.load(keys_, at_left), y = b_.load(keys_, at_right);
      const Value takes_right = j < end && (middle <= i || before(y, x));
      b_.store(keys_, target + to, b_.select(takes_right, y, x));
      b_.store(positions_, target + to, b_.load(positions_, b_.select(takes_right, at_right, at_left)));
      b_.set(right, b_.select(takes_right, j + 1, j));
      b_.set(left, b_.select(takes_right, i, i + 1));
    });
  }
};

/// top_k: a heap of the best elements so far, with the worst one on top; each better element replaces it.
class HeapSelect : RowRanking {
 public:
  HeapSelect(const CpuContext& lowering, ir::ValueId id)
      : RowRanking(lowering, id, "top_k", KernelRole::top_k), count_(along_.node.attrs.get<Dim>("k").unnamed()) {}

  KernelContext::Built run() {
    declare(count_);
    const Value k = context_.dim(count_);
    levels_ = bits(k);
    b_.parallel_for(0, context_.dim(tasks()), 1, [&](Value row) {
      b_.if_(b_.index(0) < k, [&] {
        first_elements(row, k);
        others(row, k);
        in_order(row, k);
      });
    });
    auto built = context_.finish();
    built.launch.work = along_.size * Dim(top_k_element_work) + count_ * Dim(top_k_taken_work);
    return built;
  }

 private:
  struct Entry {
    Value key, position;
  };

  /// Returns the number of levels of a heap of k.
  Value bits(Value k) {
    if (const auto known = b_.constant_value(k)) {
      std::int64_t levels = 0;
      while (levels < index_bits && (std::int64_t{1} << levels) <= *known) ++levels;
      return b_.index(levels);
    }
    Value levels = b_.index(0);
    for (int bit = 0; bit < index_bits; ++bit)
      levels = levels + b_.select(b_.index(std::int64_t{1} << bit) <= k, b_.index(1), b_.index(0));
    return levels;
  }

  Entry entry(Value at) { return {b_.load(keys_, at), b_.load(positions_, at)}; }
  void put(Value at, const Entry& e) {
    b_.store(keys_, at, e.key);
    b_.store(positions_, at, e.position);
  }

  /// Whether x is worse than y; of equal elements, the later one is worse.
  Value is_worse(const Entry& x, const Entry& y) {
    return before(y.key, x.key) || (kernel::logical_not(before(x.key, y.key)) && y.position < x.position);
  }

  /// Sifts an entry down from `top` of a heap of `size`: while one of its two children is worse, that child moves up.
  void sift(Value top, Value size, const Entry& e) {
    const Var hole = b_.var(top);
    b_.for_loop(0, levels_, 1, [&](Value) {
      const Value left = b_.get(hole) * 2 + 1;
      b_.if_(left < size, [&] {
        const Value right = kernel::min(left + 1, size - 1);
        const Value child = b_.select(is_worse(entry(right), entry(left)), right, left);
        const Entry below = entry(child);
        b_.if_(is_worse(below, e), [&] {
          put(b_.get(hole), below);
          b_.set(hole, child);
        });
      });
    });
    put(b_.get(hole), e);
  }

  void first_elements(Value row, Value k) {
    b_.for_loop(0, k, 1, [&](Value t) { put(t, {elements(row, t, 1), t}); });
    b_.for_loop(0, k / 2, 1, [&](Value turn) {
      const Value top = k / 2 - 1 - turn;
      sift(top, k, entry(top));
    });
  }

  void others(Value row, Value k) {
    const auto one = [&](Value t) {
      const Value key = elements(row, t, 1);
      b_.if_(before(key, b_.load(keys_, 0)), [&] { sift(b_.index(0), k, {key, t}); });
    };
    if (lanes_ == 1) return b_.for_loop(k, size_, 1, one);
    vector_loop(b_, k, size_, lanes_, [&](Value t, Value mask) {
      const Value better = before(elements(row, t, lanes_, mask), b_.broadcast(b_.load(keys_, 0), lanes_));
      const Value any = b_.reduce(ScalarOp::logical_or, mask ? better && mask : better);
      b_.if_(any, [&] { b_.for_loop(t, kernel::min(t + lanes_, size_), 1, one); });
    });
  }

  /// Stores the results from last to first, each time the worst element that is left in the heap.
  void in_order(Value row, Value k) {
    b_.for_loop(0, k, 1, [&](Value turn) {
      const Value last = k - 1 - turn;
      b_.store(context_.buffer(out_), result_at(row, last, k), b_.load(positions_, 0));
      b_.if_(b_.index(0) < last, [&] { sift(b_.index(0), last, entry(last)); });
    });
  }

  Dim count_;
  Value levels_;
};

}  // namespace

std::vector<KernelContext::Built> lower_sort(const CpuContext& context, const Region& region) {
  const ir::ValueId id = region.members[0];
  std::vector<KernelContext::Built> built;
  built.push_back(context.graph[id].op == &ir::ops::top_k ? HeapSelect(context, id).run()
                                                          : MergeSort(context, id).run());
  return built;
}

}  // namespace lathe::cpu
