#include "runtime/ranks/exchanges.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "ir/support/error.h"
#include "runtime/ranks/rank_stalled.h"

namespace lathe {

/// One exchange, on the communicating thread.
class ProgramExchanges::Carrier {
 public:
  Carrier(const ProgramExchanges& all, std::size_t index, Communicator& group)
      : all_(all), exchange_(all.program_.exchanges[index]), sizes_(all.part_sizes_[index]), group_(group) {}

  void run() {
    switch (exchange_.kind) {
      case Exchange::Kind::all_reduce:
        scatter();
        gather();
        return;
      case Exchange::Kind::reduce_scatter: return scatter();
      case Exchange::Kind::all_gather: return gather();
      case Exchange::Kind::all_to_all:
        for (const Exchange::Part& part : exchange_.parts) {
          const Pieces pieces = pieces_of(part);
          for (int r = 0; r < ranks(); ++r)
            move(part, r, at(part.from) + pieces.begin(r), pieces.bytes(r), at(part.to) + pieces.begin(r),
                 pieces.bytes(r));
        }
        return flush();
    }
  }

 private:
  /// How the elements of a part are shared out, in bytes.
  struct Pieces {
    std::int64_t all, one;
    std::int64_t begin(int rank) const { return std::min(all, one * rank); }
    std::size_t bytes(int rank) const { return static_cast<std::size_t>(begin(rank + 1) - begin(rank)); }
  };

  int ranks() const { return group_.size(); }
  std::byte* at(int buffer) const { return static_cast<std::byte*>(all_.buffers_[static_cast<std::size_t>(buffer)]); }
  std::int64_t element_bytes(const Exchange::Part& part) const {
    const ProgramBuffer& from = all_.program_.buffers[static_cast<std::size_t>(part.from)];
    return static_cast<std::int64_t>(size_in_bytes(from.dtype));
  }
  const PartSizes& sizes_of(const Exchange::Part& part) const {
    return sizes_[static_cast<std::size_t>(&part - exchange_.parts.data())];
  }
  Pieces pieces_of(const Exchange::Part& part) const {
    const std::int64_t elements = all_.sizes_[sizes_of(part).elements];
    return {elements * element_bytes(part), (elements + ranks() - 1) / ranks() * element_bytes(part)};
  }

  /// To and from a rank, for `part`; to itself at once.
  void move(const Exchange::Part& part, int rank, std::byte* from, std::size_t sent, std::byte* to,
            std::size_t received) {
    if (rank == group_.rank()) {
      LATHE_ASSERT(sent == received);
      if (sent > 0 && from != to) std::memmove(to, from, sent);
      return;
    }
    if (sent > 0) sends_.push_back({rank, from, sent});
    (is_scalar(part) ? sent_.scalars : sent_.tensors) += static_cast<std::int64_t>(sent);
    if (received > 0) receives_.push_back({rank, to, received});
  }

  void flush() {
    try {
      group_.exchange(sends_, receives_, all_.ranks_->patience());
    } catch (const StalledExchange& stalled) {
      const Exchange::Part& part = exchange_.parts.front();
      throw rank_stalled(all_.ranks_->rank(), all_.ranks_->patience(), stalled,
                         "the exchange of " + part.op.to_string(), exchange_.axis, part.loc, part.op.op_name());
    }
    all_.ranks_->count_sent(std::exchange(sent_, {}));
    sends_.clear();
    receives_.clear();
  }

  /// Whether the whole of what is exchanged is one element.
  bool is_scalar(const Exchange::Part& part) const {
    return exchange_.kind != Exchange::Kind::all_gather && all_.sizes_[sizes_of(part).elements] == 1;
  }

  /// Pieces to their processes, and the fold of the own one.
  void scatter() {
    const int own = group_.rank();
    for (const Exchange::Part& part : exchange_.parts) {
      const Pieces pieces = pieces_of(part);
      for (int r = 0; r < ranks(); ++r)
        move(part, r, at(part.from) + pieces.begin(r), pieces.bytes(r), at(part.received) + pieces.one * r,
             pieces.bytes(own));
    }
    flush();
    for (const Exchange::Part& part : exchange_.parts) fold(part);
  }

  void fold(const Exchange::Part& part) const {
    const Launch& launch = *part.fold;
    const auto& kernel = all_.kernels_[static_cast<std::size_t>(launch.kernel)];
    std::vector<void*> buffers;
    for (const int b : launch.buffers) buffers.push_back(at(b));
    std::vector<std::int64_t> dims;
    for (const std::size_t dim : sizes_of(part).fold_dims) dims.push_back(all_.sizes_[dim]);
    std::int64_t status = 0;
    const std::int64_t extent = kernel.extent(dims.data());
    if (extent > 0) kernel.run(buffers.data(), dims.data(), 0, extent, &status);
  }

  /// Own pieces of results, or all that a process has, to everybody.
  void gather() {
    const bool of_pieces = exchange_.kind == Exchange::Kind::all_reduce;
    const int own = group_.rank();
    for (const Exchange::Part& part : exchange_.parts) {
      Pieces pieces = pieces_of(part);
      if (!of_pieces) pieces = {pieces.all * ranks(), pieces.all};
      std::byte* const from = at(of_pieces ? part.folded : part.from);
      for (int r = 0; r < ranks(); ++r)
        move(part, r, from, pieces.bytes(own), at(part.to) + pieces.begin(r), pieces.bytes(r));
    }
    flush();
  }

  const ProgramExchanges& all_;
  const Exchange& exchange_;
  const std::vector<PartSizes>& sizes_;
  Communicator& group_;
  std::vector<Message> sends_, receives_;
  SentBytes sent_;  ///< by sends_
};

ProgramExchanges::ProgramExchanges(const Program& program, const codegen::CompiledKernels& kernels, DimTable& table,
                                   Ranks* ranks)
    : program_(program), kernels_(kernels), ranks_(ranks), by_end_(program.exchanges.size()) {
  for (const Exchange& exchange : program.exchanges) {
    std::vector<PartSizes>& sizes = part_sizes_.emplace_back();
    for (const Exchange::Part& part : exchange.parts) {
      PartSizes& own = sizes.emplace_back();
      own.elements = table.add(part.elements);
      if (part.fold)
        for (const Dim& dim : part.fold->dims) own.fold_dims.push_back(table.add(dim));
    }
    if (!ranks) continue;
    const int axis = ranks->mesh().find(exchange.axis);
    if (ranks->mesh()[axis].ranks != exchange.ranks)
      throw UserError(exchange.parts.front().loc, exchange.parts.front().op.op_name(),
                      fmt::format("it is one of {} processes along {}, and the mesh is {}", exchange.ranks,
                                  exchange.axis, ranks->mesh().to_string()),
                      "mesh_processes", "divide the graph over the mesh of the processes that run it");
  }
  std::iota(by_end_.begin(), by_end_.end(), 0);
  std::ranges::stable_sort(by_end_, {}, [&](int e) { return program.exchanges[static_cast<std::size_t>(e)].done; });
  jobs_.resize(program.exchanges.size());
}

ProgramExchanges::~ProgramExchanges() = default;

void ProgramExchanges::begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  sizes_ = sizes;
  buffers_ = buffers;
  started_ = ended_ = 0;
}

void ProgramExchanges::before_launch(int launch) {
  if (!ranks_) return;
  const std::vector<Exchange>& all = program_.exchanges;
  for (; started_ < all.size() && all[started_].start <= launch; ++started_) {
    const std::size_t e = started_;
    jobs_[e] = ranks_->start(all[e].axis, [this, e](Communicator& group) { Carrier(*this, e, group).run(); });
  }
  while (ended_ < by_end_.size()) {
    const auto e = static_cast<std::size_t>(by_end_[ended_]);
    if (all[e].done > launch) break;
    ++ended_;
    ranks_->wait(jobs_[e]);
  }
}

void ProgramExchanges::stop() noexcept {
  if (!ranks_) return;
  ranks_->interrupt();
  for (; ended_ < by_end_.size(); ++ended_) {
    const auto e = static_cast<std::size_t>(by_end_[ended_]);
    if (e >= started_) continue;
    try {
      ranks_->wait(jobs_[e]);
    } catch (...) {  // the run has failed already
    }
  }
}

}  // namespace lathe
