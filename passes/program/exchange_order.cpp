#include "passes/program/exchange_order.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "ir/tensor/mesh/exchange_window.h"

namespace lathe {

namespace {

/// Finds times and buckets of exchanges from the launches that access each buffer.
class ExchangeOrder {
 public:
  explicit ExchangeOrder(Program& program) : program_(program), uses_(program.buffers.size()) {
    for (int l = 0; l < launches(); ++l) {
      const Launch& launch = program.launches[static_cast<std::size_t>(l)];
      const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
      for (std::size_t i = 0; i < launch.buffers.size(); ++i)
        uses_[static_cast<std::size_t>(launch.buffers[i])].push_back(
            {l, kernel.buffers[i].access != kernel::Access::read});
    }
  }

  void find_times() {
    std::vector<Exchange>& all = program_.exchanges;
    for (std::size_t e = 0; e < all.size(); ++e) {
      const int here = all[e].start;
      all[e].start = 0;
      all[e].done = launches();
      for_buffers(all[e], [&](int buffer, bool writes) { limit(all[e], here, buffer, writes); });
      for (std::size_t before = 0; before < e; ++before)
        if (meet(all[before], all[e])) all[e].start = std::max(all[e].start, all[before].start);
    }
    keep_rings_short();
    // Gathers that only later exchanges or the next run reads are not delayed.
    keep_apart(&ir::limit_prefetch, [&](const Exchange& exchange) {
      return exchange.kind == Exchange::Kind::all_gather && exchange.done < launches();
    });
    keep_apart(&ir::limit_backlog,
               [&](const Exchange& exchange) { return exchange.kind == Exchange::Kind::reduce_scatter; });
    for (std::size_t e = 0; e < all.size(); ++e) {
      for (std::size_t before = 0; before < e; ++before)
        if (meet(all[before], all[e])) {
          all[e].start = std::max(all[e].start, all[before].start);
          all[before].done = std::min(all[before].done, all[e].start);
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Exchange& a, const Exchange& b) { return a.start < b.start; });
  }

  void fill_buckets(std::int64_t most_bytes) {
    std::vector<Exchange> ordered;
    for (Exchange& next : program_.exchanges) {
      const auto bucket = std::find_if(ordered.rbegin(), ordered.rend(), [&](const Exchange& before) {
        return before.kind == next.kind && before.axis == next.axis;
      });
      const auto needs_bucket = [&](const Exchange& other) { return meet(*bucket, other); };
      if (bucket != ordered.rend() && goes_with(*bucket, next, most_bytes) && !needs_bucket(next) &&
          std::none_of(ordered.rbegin(), bucket, needs_bucket)) {
        next.parts.insert(next.parts.begin(), std::make_move_iterator(bucket->parts.begin()),
                          std::make_move_iterator(bucket->parts.end()));
        next.done = std::min(next.done, bucket->done);
        ordered.erase(std::next(bucket).base());
      }
      ordered.push_back(std::move(next));
    }
    program_.exchanges = std::move(ordered);
  }

 private:
  /// Starts a send_recv when the output of the previous one is first read. So a ring holds two values at a time: the
  /// one in use and the one in flight.
  void keep_rings_short() {
    std::map<std::string, std::set<int>> reads;  // by axis: the launches that first read received values
    for (const Exchange& exchange : program_.exchanges)
      if (exchange.kind == Exchange::Kind::send_recv) reads[exchange.axis].insert(first_of_region(exchange.done));
    for (Exchange& exchange : program_.exchanges) {
      if (exchange.kind != Exchange::Kind::send_recv) continue;
      const std::set<int>& all = reads.at(exchange.axis);
      const auto own = all.find(first_of_region(exchange.done));
      if (own != all.begin()) exchange.start = std::max(exchange.start, *std::prev(own));
    }
  }
  /// Returns the first launch of the contiguous run of launches in the same region.
  int first_of_region(int launch) const {
    const auto region = [&](int l) { return program_.launches[static_cast<std::size_t>(l)].info.region; };
    while (launch > 0 && launch < launches() && region(launch - 1) == region(launch)) --launch;
    return launch;
  }

  struct Use {
    int launch;
    bool writes;
  };

  int launches() const { return static_cast<int>(program_.launches.size()); }

  /// Limits an exchange at position `here` to the gap between launches that conflict on a buffer.
  void limit(Exchange& exchange, int here, int buffer, bool writes) const {
    for (const Use& use : uses_[static_cast<std::size_t>(buffer)]) {
      if (!writes && !use.writes) continue;
      if (use.launch < here)
        exchange.start = std::max(exchange.start, use.launch + 1);
      else
        exchange.done = std::min(exchange.done, use.launch);
    }
  }

  /// Applies `bound` to the exchanges for which `which` is true and whose sizes are known.
  template <class Which>
  void keep_apart(void (*bound)(std::vector<ir::ExchangeTimes>&), Which which) {
    std::vector<Exchange*> chosen;
    std::vector<ir::ExchangeTimes> times;
    for (Exchange& exchange : program_.exchanges) {
      const auto bytes = which(exchange) ? bytes_of(exchange) : std::nullopt;
      if (!bytes) continue;
      chosen.push_back(&exchange);
      times.push_back({exchange.start, exchange.done, *bytes, last_reader(exchange)});
    }
    bound(times);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i]->start = times[i].start;
      chosen[i]->done = times[i].done;
    }
  }

  /// Returns the last launch that accesses an output of the exchange.
  int last_reader(const Exchange& exchange) const {
    int last = exchange.done;
    for (const Exchange::Part& part : exchange.parts)
      for (const Use& use : uses_[static_cast<std::size_t>(part.to)]) last = std::max(last, use.launch);
    return last;
  }

  static bool meet(const Exchange& a, const Exchange& b) {
    bool found = false;
    for_buffers(a, [&](int buffer, bool writes) {
      for_buffers(
          b, [&](int other, bool other_writes) { found = found || (buffer == other && (writes || other_writes)); });
    });
    return found;
  }

  /// Bytes of the unsharded values, if known.
  std::optional<std::int64_t> bytes_of(const Exchange& exchange) const {
    const std::int64_t parts = exchange.kind == Exchange::Kind::all_gather ? exchange.ranks : 1;
    std::int64_t bytes = 0;
    for (const Exchange::Part& part : exchange.parts) {
      const auto elements = part.elements.unnamed().value();
      if (!elements) return std::nullopt;
      const ProgramBuffer& from = program_.buffers[static_cast<std::size_t>(part.from)];
      bytes += parts * *elements * static_cast<std::int64_t>(size_in_bytes(from.dtype));
    }
    return bytes;
  }

  /// Reductions, and all-gathers that only the next run reads.
  bool shares_buckets(const Exchange& exchange) const {
    switch (exchange.kind) {
      case Exchange::Kind::all_reduce:
      case Exchange::Kind::reduce_scatter: return true;
      case Exchange::Kind::all_gather: return exchange.done == launches();
      case Exchange::Kind::all_to_all:
      case Exchange::Kind::send_recv: return false;
    }
    return false;
  }

  bool goes_with(const Exchange& bucket, const Exchange& next, std::int64_t most_bytes) const {
    if (!shares_buckets(bucket) || !shares_buckets(next) || next.start > bucket.done) return false;
    // An exchange that must be done when the next one starts cannot wait for it.
    if (next.kind == Exchange::Kind::reduce_scatter && next.start == bucket.done) return false;
    const auto own = bytes_of(next), others = bytes_of(bucket);
    return own && others && *own + *others <= most_bytes;
  }

  Program& program_;
  std::vector<std::vector<Use>> uses_;  // by buffer, in launch order
};

}  // namespace

void order_exchanges(Program& program, std::int64_t bucket_bytes) {
  if (program.exchanges.empty()) return;
  ExchangeOrder order(program);
  order.find_times();
  if (bucket_bytes > 0) order.fill_buckets(bucket_bytes);
}

}  // namespace lathe
