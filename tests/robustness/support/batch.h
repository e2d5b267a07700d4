#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/robustness/support/attack.h"

namespace lathe::robustness {

/// The valid outcomes for a mutant; everything else is a finding.
enum class Answer : std::uint8_t { taken, refused };

/// Mutants that are checked in separate processes, a hundred in each, so that a crash or a hang is an ordinary
/// finding and costs little.
struct Mutants {
  std::function<std::string(std::uint64_t seed)> make;
  /// Throws an InternalError or a Wrong for a finding. A UserError, a ParseError and std::bad_alloc count as
  /// `refused`.
  std::function<Answer(std::uint64_t seed, const std::string& mutant)> check;
  std::string ending;                 ///< extension of saved findings: ".lathe"
  unsigned seconds = 60;              ///< CPU time limit for a hundred mutants
  std::uint64_t memory = 4ull << 30;  ///< bytes of address space
};

/// An invalid result.
class Wrong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void try_mutants(Report& report, std::int64_t by_default, const Mutants& mutants);

}  // namespace lathe::robustness
