#include "passes/shard/predict/step_time.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/ops/collectives.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/mesh/collective_window.h"
#include "passes/shard/predict/product_flops.h"

namespace lathe::shard {

using namespace ir;

namespace {

double message_seconds(const Collective& collective, const StepRates& rates) {
  return static_cast<double>(messages(collective)) * rates.latency;
}
double byte_seconds(const Collective& collective, const StepRates& rates, const DimBindings& dims) {
  return static_cast<double>(bytes_sent(collective, dims)) / rates.bandwidth;
}

/// Collectives that are sent together, by the positions of nodes.
struct Bucket {
  int start;                     ///< the node before which it may start
  int done;                      ///< the node before which it must be complete
  std::vector<int> collectives;  ///< nodes
  std::string axis;
  const Op* op;
  std::optional<std::int64_t> bytes;  ///< if known without dims
  double message_seconds, byte_seconds;
  int last = 0;  ///< the last node that reads the result of a gather
};

class Playback {
 public:
  Playback(const Graph& graph, const StepRates& rates, const DimBindings& dims)
      : graph_(graph), rates_(rates), dims_(dims), ready_(graph.nodes.size(), 0), source_(graph.nodes.size(), -1) {}

  StepTime run() {
    find_collectives();
    fill_buckets();
    return play();
  }

 private:
  /// Whether a collective shares buckets: sums, and gathers of values that the next step reads.
  bool shares_buckets(const Bucket& bucket) const {
    if (bucket.op == &ops::all_gather) return bucket.done == graph_.size();
    return bucket.op == &ops::all_reduce || bucket.op == &ops::reduce_scatter;
  }
  static std::size_t at(int node) { return static_cast<std::size_t>(node); }

  /// Finds when each value is available, and when each collective may start and must be complete. Arguments are
  /// available from the beginning, and a view when its operand is.
  void find_collectives() {
    std::vector<int> bucket_of(graph_.nodes.size(), -1);
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const bool collectives = is_collective(*node.op) && node.op != &ops::mesh_index;
      const bool passes_on = collectives || node.op->as<View>() != nullptr;
      if (!passes_on && !node.op->as<Argument>()) ready_[at(id.index)] = id.index + 1;
      for (const ValueId operand : node.operands) {
        const int from = source_[at(operand.index)];
        if (passes_on) ready_[at(id.index)] = std::max(ready_[at(id.index)], ready_[at(operand.index)]);
        if (passes_on && !collectives) source_[at(id.index)] = from;
        if (!passes_on && from >= 0) limit(bucket_of[at(from)], id.index);
      }
      if (!collectives) continue;
      const Collective collective = described(graph_, node);
      std::optional<std::int64_t> bytes = collective.bytes().value();
      bucket_of[at(id.index)] = static_cast<int>(buckets_.size());
      source_[at(id.index)] = id.index;
      buckets_.push_back({.start = ready_[at(id.index)],
                          .done = graph_.size(),
                          .collectives = {id.index},
                          .axis = collective.axis.name,
                          .op = node.op,
                          .bytes = bytes,
                          .message_seconds = message_seconds(collective, rates_),
                          .byte_seconds = byte_seconds(collective, rates_, dims_)});
    }
    keep_rings_short();
    keep_apart(&limit_prefetch,
               [&](const Bucket& bucket) { return bucket.op == &ops::all_gather && bucket.done < graph_.size(); });
    keep_apart(&limit_backlog, [](const Bucket& bucket) { return bucket.op == &ops::reduce_scatter; });
    std::stable_sort(buckets_.begin(), buckets_.end(),
                     [](const Bucket& a, const Bucket& b) { return a.start < b.start; });
  }
  /// A send_recv starts when the value received before it is first read.
  void keep_rings_short() {
    std::map<std::string, std::set<int>> reads;  // by axis: where received values are first read
    for (const Bucket& bucket : buckets_)
      if (bucket.op == &ops::send_recv) reads[bucket.axis].insert(bucket.done);
    for (Bucket& bucket : buckets_) {
      if (bucket.op != &ops::send_recv) continue;
      const std::set<int>& all = reads.at(bucket.axis);
      const auto own = all.find(bucket.done);
      if (own != all.begin()) bucket.start = std::max(bucket.start, *std::prev(own));
    }
  }
  /// Bounds the times of collectives as executables do.
  template <class Which>
  void keep_apart(void (*bound)(std::vector<CollectiveTimes>&), Which which) {
    std::vector<Bucket*> chosen;
    std::vector<CollectiveTimes> times;
    for (Bucket& bucket : buckets_) {
      if (!which(bucket) || !bucket.bytes) continue;
      chosen.push_back(&bucket);
      times.push_back({bucket.start, bucket.done, *bucket.bytes, bucket.last});
    }
    bound(times);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i]->start = times[i].start;
      chosen[i]->done = times[i].done;
    }
  }
  void limit(int bucket, int reader) {
    Bucket& read = buckets_[at(bucket)];
    read.done = std::min(read.done, reader);
    read.last = std::max(read.last, reader);
  }

  /// Whether a collective of `later` reads a result of `bucket`.
  bool needs(const Bucket& later, const Bucket& bucket) const {
    return std::ranges::any_of(later.collectives, [&](int e) {
      return std::ranges::any_of(graph_.nodes[at(e)].operands, [&](ValueId operand) {
        return std::ranges::count(bucket.collectives, source_[at(operand.index)]) > 0;
      });
    });
  }

  bool goes_with(const Bucket& bucket, const Bucket& next) const {
    if (next.op == &ops::reduce_scatter && next.start == bucket.done) return false;  // bounded by the next one
    return shares_buckets(next) && shares_buckets(bucket) && next.start <= bucket.done && next.bytes &&
           bucket.bytes && *next.bytes + *bucket.bytes <= rates_.bucket_bytes;
  }

  /// A bucket has the position of its last collective.
  void fill_buckets() {
    std::vector<Bucket> ordered;
    for (Bucket& next : buckets_) {
      const auto bucket = std::find_if(ordered.rbegin(), ordered.rend(), [&](const Bucket& before) {
        return before.op == next.op && before.axis == next.axis;
      });
      const auto needs_bucket = [&](const Bucket& other) { return needs(other, *bucket); };
      if (bucket != ordered.rend() && goes_with(*bucket, next) && !needs_bucket(next) &&
          std::none_of(ordered.rbegin(), bucket, needs_bucket)) {
        next.collectives.insert(next.collectives.begin(), bucket->collectives.begin(), bucket->collectives.end());
        next.done = std::min(next.done, bucket->done);
        next.bytes = *next.bytes + *bucket->bytes;
        next.byte_seconds += bucket->byte_seconds;
        ordered.erase(std::next(bucket).base());
      }
      ordered.push_back(std::move(next));
    }
    buckets_ = std::move(ordered);
  }

  StepTime play() const {
    StepTime time;
    double now = 0, network_free = 0;
    std::size_t started = 0;
    std::vector<double> over(buckets_.size(), 0);
    const auto reach = [&](int node) {
      for (; started < buckets_.size() && buckets_[started].start <= node; ++started) {
        const Bucket& bucket = buckets_[started];
        const double seconds = bucket.message_seconds + bucket.byte_seconds;
        network_free = over[started] = std::max(network_free, now) + seconds;
        time.collectives += seconds;
      }
      double until = now;
      for (std::size_t b = 0; b < started; ++b)
        if (buckets_[b].done <= node) until = std::max(until, over[b]);
      time.waiting += until - now;
      now = until;
    };
    for (const ValueId id : all_values(graph_)) {
      reach(id.index);
      const double seconds = product_flops(graph_, id, dims_) / rates_.flops;
      time.products += seconds;
      now += seconds;
    }
    reach(graph_.size());
    return time;
  }

  const Graph& graph_;
  const StepRates& rates_;
  const DimBindings& dims_;
  std::vector<int> ready_;   ///< by node: the position after which its value is available
  std::vector<int> source_;  ///< by node: the collective whose result it is a view of
  std::vector<Bucket> buckets_;
};

}  // namespace

double collective_seconds(const Collective& collective, const StepRates& rates, const DimBindings& dims) {
  return message_seconds(collective, rates) + byte_seconds(collective, rates, dims);
}

StepTime step_time(const Graph& graph, const StepRates& rates, const DimBindings& dims) {
  return Playback(graph, rates, dims).run();
}

}  // namespace lathe::shard
