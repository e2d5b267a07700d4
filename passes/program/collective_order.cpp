#include "passes/program/collective_order.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "ir/tensor/mesh/collective_window.h"
#include "passes/program/program_loops.h"

namespace lathe {

namespace {

/// Finds times and buckets of collectives from the launches that access each buffer.
class CollectiveOrder {
 public:
  explicit CollectiveOrder(Program& program) : program_(program), uses_(program.buffers.size()) {
    for (int l = 0; l < launches(); ++l) {
      const Launch& launch = program.launches[l];
      const kernel::Kernel& kernel = program.kernels[launch.kernel];
      for (std::size_t i = 0; i < launch.buffers.size(); ++i)
        uses_[storage_of(program, launch.buffers[i])].push_back(
            {l, kernel.buffers[i].access != kernel::Access::read});
    }
  }

  void find_times() {
    std::vector<Collective>& all = program_.collectives;
    for (std::size_t e = 0; e < all.size(); ++e) {
      const int here = all[e].start;
      all[e].start = 0;
      all[e].done = launches();
      for_buffers(all[e], [&](int buffer, bool writes) { limit(all[e], here, buffer, writes); });
      for (std::size_t before = 0; before < e; ++before)
        if (meet(all[before], all[e])) all[e].start = std::max(all[e].start, all[before].start);
    }
    keep_rings_short();
    // Gathers that only later collectives or the next run reads are not delayed.
    keep_apart(&ir::limit_prefetch, [&](const Collective& collective) {
      return collective.kind == Collective::Kind::all_gather && collective.done < launches();
    });
    keep_apart(&ir::limit_backlog,
               [&](const Collective& collective) { return collective.kind == Collective::Kind::reduce_scatter; });
    leave_loops();
    for (std::size_t e = 0; e < all.size(); ++e) {
      for (std::size_t before = 0; before < e; ++before)
        if (meet(all[before], all[e])) {
          all[e].start = std::max(all[e].start, all[before].start);
          all[before].done = std::min(all[before].done, all[e].start);
        }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Collective& a, const Collective& b) { return a.start < b.start; });
  }

  void fill_buckets(std::int64_t most_bytes) {
    std::vector<Collective> ordered;
    for (Collective& next : program_.collectives) {
      const auto bucket = std::find_if(ordered.rbegin(), ordered.rend(), [&](const Collective& before) {
        return before.kind == next.kind && before.axis == next.axis;
      });
      const auto needs_bucket = [&](const Collective& other) { return meet(*bucket, other); };
      if (bucket != ordered.rend() && goes_with(*bucket, next, most_bytes) && !needs_bucket(next) &&
          std::none_of(ordered.rbegin(), bucket, needs_bucket)) {
        next.parts.insert(next.parts.begin(), std::make_move_iterator(bucket->parts.begin()),
                          std::make_move_iterator(bucket->parts.end()));
        next.done = std::min(next.done, bucket->done);
        ordered.erase(std::next(bucket).base());
      }
      ordered.push_back(std::move(next));
    }
    program_.collectives = std::move(ordered);
  }

 private:
  /// Starts a send_recv when the output of the previous one is first read. So a ring holds two values at a time: the
  /// one in use and the one in flight.
  void keep_rings_short() {
    std::map<std::string, std::set<int>> reads;  // by axis: the launches that first read received values
    for (const Collective& collective : program_.collectives)
      if (collective.kind == Collective::Kind::send_recv)
        reads[collective.axis].insert(first_of_region(collective.done));
    for (Collective& collective : program_.collectives) {
      if (collective.kind != Collective::Kind::send_recv) continue;
      const std::set<int>& all = reads.at(collective.axis);
      const auto own = all.find(first_of_region(collective.done));
      if (own != all.begin()) collective.start = std::max(collective.start, *std::prev(own));
    }
  }
  /// Returns the first launch of the contiguous run of launches in the same region.
  int first_of_region(int launch) const {
    const auto region = [&](int l) { return program_.launches[l].info.region; };
    while (launch > 0 && launch < launches() && region(launch - 1) == region(launch)) --launch;
    return launch;
  }

  struct Use {
    int launch;
    bool writes;
  };

  int launches() const { return static_cast<int>(program_.launches.size()); }

  /// Limits a collective at position `here` to the gap between launches that conflict on a buffer.
  void limit(Collective& collective, int here, int buffer, bool writes) const {
    for (const Use& use : uses_[buffer]) {
      if (!writes && !use.writes) continue;
      if (use.launch < here)
        collective.start = std::max(collective.start, use.launch + 1);
      else
        collective.done = std::min(collective.done, use.launch);
    }
  }

  /// Applies `bound` to the collectives for which `which` is true and whose sizes are known.
  template <class Which>
  void keep_apart(void (*bound)(std::vector<ir::CollectiveTimes>&), Which which) {
    std::vector<Collective*> chosen;
    std::vector<ir::CollectiveTimes> times;
    for (Collective& collective : program_.collectives) {
      const auto bytes = which(collective) ? bytes_of(collective) : std::nullopt;
      if (!bytes) continue;
      chosen.push_back(&collective);
      times.push_back({collective.start, collective.done, *bytes, last_reader(collective)});
    }
    bound(times);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i]->start = times[i].start;
      chosen[i]->done = times[i].done;
    }
  }

  /// Moves starts and deadlines out of loops, because a loop would repeat them: starts to the end of the loop and
  /// deadlines to its first launch.
  void leave_loops() {
    for (Collective& collective : program_.collectives) {
      if (const ProgramLoop* loop = loop_around(program_, collective.start)) collective.start = loop->end;
      if (const ProgramLoop* loop = loop_around(program_, collective.done)) collective.done = loop->first;
      collective.done = std::max(collective.start, collective.done);  // both were in one loop
    }
  }

  /// Returns the last launch that accesses an output of the collective.
  int last_reader(const Collective& collective) const {
    int last = collective.done;
    for (const Collective::Part& part : collective.parts)
      for (const Use& use : uses_[part.to]) last = std::max(last, use.launch);
    return last;
  }

  static bool meet(const Collective& a, const Collective& b) {
    bool found = false;
    for_buffers(a, [&](int buffer, bool writes) {
      for_buffers(
          b, [&](int other, bool other_writes) { found = found || (buffer == other && (writes || other_writes)); });
    });
    return found;
  }

  /// Bytes of the unsharded values, if known.
  std::optional<std::int64_t> bytes_of(const Collective& collective) const {
    const std::int64_t parts = collective.kind == Collective::Kind::all_gather ? collective.ranks : 1;
    std::int64_t bytes = 0;
    for (const Collective::Part& part : collective.parts) {
      const auto elements = part.elements.unnamed().value();
      if (!elements) return std::nullopt;
      const ProgramBuffer& from = program_.buffers[part.from];
      bytes += parts * *elements * static_cast<std::int64_t>(size_in_bytes(from.dtype));
    }
    return bytes;
  }

  /// Reductions, and all-gathers that only the next run reads.
  bool shares_buckets(const Collective& collective) const {
    switch (collective.kind) {
      case Collective::Kind::all_reduce:
      case Collective::Kind::reduce_scatter: return true;
      case Collective::Kind::all_gather: return collective.done == launches();
      case Collective::Kind::all_to_all:
      case Collective::Kind::send_recv: return false;
    }
    return false;
  }

  bool goes_with(const Collective& bucket, const Collective& next, std::int64_t most_bytes) const {
    if (!shares_buckets(bucket) || !shares_buckets(next) || next.start > bucket.done) return false;
    // A collective that must be done when the next one starts cannot wait for it.
    if (next.kind == Collective::Kind::reduce_scatter && next.start == bucket.done) return false;
    const auto own = bytes_of(next), others = bytes_of(bucket);
    return own && others && *own + *others <= most_bytes;
  }

  Program& program_;
  std::vector<std::vector<Use>> uses_;  // by buffer, in launch order
};

}  // namespace

void order_collectives(Program& program, std::int64_t bucket_bytes) {
  if (program.collectives.empty()) return;
  CollectiveOrder order(program);
  order.find_times();
  if (bucket_bytes > 0) order.fill_buckets(bucket_bytes);
}

}  // namespace lathe
