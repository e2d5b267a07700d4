#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor/mesh/sent_bytes.h"
#include "passes/lowering/program/program.h"
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
  std::vector<Copy> copies;                  ///< pieces that stay here
  std::vector<Message> sends, receives;      ///< all of these,
  std::vector<Gather> gathers;               ///< and these, go together
  std::vector<const Exchange::Part*> folds;  ///< when all of that is there
  ir::SentBytes sent;                        ///< by this rank
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
