#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/mesh/sent_bytes.h"
#include "passes/program/program.h"
#include "runtime/ranks/communicator.h"

namespace lathe {

/// One step of an exchange, as one rank of a group carries it out. Addresses are of the memory that the program runs
/// in, of a CPU or of a GPU.
struct ExchangeStep {
  struct Copy {
    std::byte *from, *to;
    std::size_t bytes;
  };
  /// As many bytes from each rank, to all of them: `to` takes those of rank r at r * bytes.
  struct Gather {
    std::byte *from, *to;
    std::size_t bytes;
  };
  /// `elements` of each rank, those of rank r at `from` + r * elements, become as many.
  struct Fold {
    const Exchange::Part* part;
    std::byte *from, *to;
    std::int64_t elements;
  };
  /// What comes at a time, and what becomes of it.
  struct Round {
    std::vector<Copy> copies;  ///< what stays here
    std::vector<Message> receives;
    std::vector<Fold> folds;
  };
  std::vector<Message> sends;   ///< all of these,
  std::vector<Gather> gathers;  ///< and these, go together,
  std::vector<Round> rounds;    ///< with these, at least one; a round's memory is free for the next but one
  ir::SentBytes sent;           ///< by this rank
};

/// Where an exchange of a program takes place.
struct ExchangePlace {
  int rank, ranks;                         ///< of the group
  std::span<const std::int64_t> elements;  ///< by part of the exchange
  std::span<void* const> buffers;          ///< addresses, by program buffer
};

/// The steps of an exchange, one after the other; those of all ranks fit together:
///
///   all_reduce       pieces to their ranks, the fold in the order of ranks; the results back
///   reduce_scatter   pieces to their ranks, the fold in the order of ranks
///   all_gather       to all
///   all_to_all       pieces to their ranks
///   send_recv        to one rank, from another
///
/// With `gathers`, what goes to all goes by gathers wherever all ranks have as much; else it is messages.
std::vector<ExchangeStep> steps_of(const Program& program, const Exchange& exchange, const ExchangePlace& place,
                                   bool gathers = false);

}  // namespace lathe
