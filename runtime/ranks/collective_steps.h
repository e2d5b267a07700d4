#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/mesh/sent_bytes.h"
#include "passes/program/program.h"
#include "runtime/ranks/communicator.h"

namespace lathe {

/// A step of a collective, as performed by one rank of a group. Addresses are in the memory that the program uses, of
/// a CPU or a GPU.
struct CollectiveStep {
  struct Copy {
    std::byte *from, *to;
    std::size_t bytes;
  };
  /// An all-gather with equal sizes: `to` receives the bytes of rank r at r * bytes.
  struct Gather {
    std::byte *from, *to;
    std::size_t bytes;
  };
  /// A reduction over ranks: the elements of rank r, at `from` + r * elements, are reduced to `elements` elements.
  struct Fold {
    const Collective::Part* part;
    std::byte *from, *to;
    std::int64_t elements;
  };
  /// Messages received in one round, and the work after their arrival.
  struct Round {
    std::vector<Copy> copies;  ///< from this rank to itself
    std::vector<Message> receives;
    std::vector<Fold> folds;
  };
  std::vector<Message> sends;  ///< `sends`, `gathers` and all rounds are concurrent
  std::vector<Gather> gathers;
  std::vector<Round> rounds;  ///< at least one; the memory of a round is reused by the next but one
  ir::SentBytes sent;         ///< by this rank
};

/// Memory and group of a collective.
struct CollectivePlace {
  int rank, ranks;                         ///< in the group
  std::span<const std::int64_t> elements;  ///< by part of the collective
  std::span<void* const> buffers;          ///< addresses by program buffer
};

/// Returns the steps of a collective, which run in order. The steps of all ranks match:
///
///   all_reduce       sends pieces to their ranks, reduces in rank order, sends the results to all
///   reduce_scatter   sends pieces to their ranks, reduces in rank order
///   all_gather       sends to all
///   all_to_all       sends pieces to their ranks
///   send_recv        sends to one rank, receives from another
///
/// If `gathers`, sending to all uses Gather when all ranks have equal sizes; otherwise it uses messages.
std::vector<CollectiveStep> steps_of(const Program& program, const Collective& collective,
                                     const CollectivePlace& place, bool gathers = false);

}  // namespace lathe
