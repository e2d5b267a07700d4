#include "runtime/ranks/collective_steps.h"

#include <algorithm>
#include <utility>

#include "ir/support/error.h"

namespace lathe {

namespace {

class StepPlan {
 public:
  StepPlan(const Program& program, const Collective& collective, const CollectivePlace& place, bool gathers)
      : program_(program), collective_(collective), place_(place), gathers_(gathers) {}

  std::vector<CollectiveStep> run() {
    switch (collective_.kind) {
      case Collective::Kind::all_reduce:
        scatter();
        gather();
        break;
      case Collective::Kind::reduce_scatter: scatter(); break;
      case Collective::Kind::all_gather: gather(); break;
      case Collective::Kind::all_to_all: swap(); break;
      case Collective::Kind::send_recv: pass_on(); break;
    }
    return std::move(steps_);
  }

 private:
  /// Distribution of a part's elements over the ranks, in bytes.
  struct Pieces {
    std::int64_t all, one;
    std::int64_t begin(int rank) const { return std::min(all, one * rank); }
    std::size_t bytes(int rank) const { return static_cast<std::size_t>(begin(rank + 1) - begin(rank)); }
    /// Returns the size of the intersection of a rank's piece with window w.
    std::size_t in_window(int rank, std::int64_t w, std::int64_t window) const {
      const auto piece = static_cast<std::int64_t>(bytes(rank));
      return static_cast<std::size_t>(std::clamp<std::int64_t>(piece - w * window, 0, window));
    }
  };

  std::byte* at(int buffer) const { return static_cast<std::byte*>(place_.buffers[buffer]); }
  std::int64_t elements(const Collective::Part& part) const {
    return place_.elements[&part - collective_.parts.data()];
  }
  std::int64_t element_bytes(const Collective::Part& part) const {
    return static_cast<std::int64_t>(size_in_bytes(program_.buffers[part.from].dtype));
  }
  Pieces pieces_of(const Collective::Part& part) const {
    const std::int64_t bytes = element_bytes(part);
    return {elements(part) * bytes, (elements(part) + place_.ranks - 1) / place_.ranks * bytes};
  }

  /// Returns whether the part has a single element.
  bool is_scalar(const Collective::Part& part) const {
    return collective_.kind != Collective::Kind::all_gather && elements(part) == 1;
  }
  void count(const Collective::Part& part, std::size_t bytes) {
    ir::SentBytes& sent = steps_.back().sent;
    (is_scalar(part) ? sent.scalars : sent.tensors) += static_cast<std::int64_t>(bytes);
  }

  /// Adds a message to and from a rank for `part`, or a copy if it is this rank.
  void move(const Collective::Part& part, int rank, std::byte* from, std::size_t sent, std::byte* to,
            std::size_t received) {
    CollectiveStep& step = steps_.back();
    CollectiveStep::Round& round = step.rounds.back();
    if (rank == place_.rank) {
      LATHE_ASSERT(sent == received);
      if (sent > 0 && from != to) round.copies.push_back({from, to, sent});
      return;
    }
    if (sent > 0) step.sends.push_back({rank, from, sent});
    if (received > 0) round.receives.push_back({rank, to, received});
    count(part, sent);
  }

  void begin_step() { steps_.emplace_back().rounds.emplace_back(); }

  /// Sends each rank its piece. Each round has one window of the pieces of all ranks, so that all ranks send equally
  /// many messages.
  void scatter() {
    begin_step();
    for (const Collective::Part& part : collective_.parts) {
      const Pieces pieces = pieces_of(part);
      const std::int64_t window = part.window > 0 ? part.window * element_bytes(part) : pieces.one;
      for (std::int64_t w = 0; w == 0 || w * window < pieces.one; ++w) {
        const std::size_t own = pieces.in_window(place_.rank, w, window);
        const std::int64_t stride = part.window > 0 ? static_cast<std::int64_t>(own) : pieces.one;
        std::byte* const received = at(part.received) + w % 2 * window * place_.ranks;
        if (w > 0) steps_.back().rounds.emplace_back();
        for (int r = 0; r < place_.ranks; ++r)
          move(part, r, at(part.from) + pieces.begin(r) + w * window, pieces.in_window(r, w, window),
               received + stride * r, own);
        if (own > 0)
          steps_.back().rounds.back().folds.push_back(
              {&part, received, result_of(part) + w * window, stride / element_bytes(part)});
      }
    }
  }

  /// Returns the output of the reduction.
  std::byte* result_of(const Collective::Part& part) const { return at(part.folded >= 0 ? part.folded : part.to); }

  /// Sends this rank's piece of the results, or all of its elements, to all ranks.
  void gather() {
    begin_step();
    const bool of_pieces = collective_.kind == Collective::Kind::all_reduce;
    for (const Collective::Part& part : collective_.parts) {
      Pieces pieces = pieces_of(part);
      if (!of_pieces) pieces = {pieces.all * place_.ranks, pieces.all};
      const bool is_in_place = part.from == part.to;
      std::byte* const from = at(of_pieces ? part.folded : part.from) + (is_in_place ? pieces.begin(place_.rank) : 0);
      const std::size_t own = pieces.bytes(place_.rank);
      if (gathers_ && own > 0 && pieces.all == pieces.one * place_.ranks) {
        steps_.back().gathers.push_back({from, at(part.to), own});
        count(part, own * static_cast<std::size_t>(place_.ranks - 1));
        continue;
      }
      for (int r = 0; r < place_.ranks; ++r) move(part, r, from, own, at(part.to) + pieces.begin(r), pieces.bytes(r));
    }
  }

  void swap() {
    begin_step();
    for (const Collective::Part& part : collective_.parts) {
      const Pieces pieces = pieces_of(part);
      for (int r = 0; r < place_.ranks; ++r)
        move(part, r, at(part.from) + pieces.begin(r), pieces.bytes(r), at(part.to) + pieces.begin(r),
             pieces.bytes(r));
    }
  }

  void pass_on() {
    begin_step();
    const int offset = static_cast<int>(collective_.offset);
    const int next = (place_.rank + offset) % place_.ranks,
              last = (place_.rank + place_.ranks - offset) % place_.ranks;
    for (const Collective::Part& part : collective_.parts) {
      const auto bytes = static_cast<std::size_t>(pieces_of(part).all);
      move(part, next, at(part.from), bytes, nullptr, 0);
      move(part, last, nullptr, 0, at(part.to), bytes);
    }
  }

  const Program& program_;
  const Collective& collective_;
  const CollectivePlace& place_;
  bool gathers_;
  std::vector<CollectiveStep> steps_;
};

}  // namespace

std::vector<CollectiveStep> steps_of(const Program& program, const Collective& collective,
                                     const CollectivePlace& place, bool gathers) {
  return StepPlan(program, collective, place, gathers).run();
}

}  // namespace lathe
