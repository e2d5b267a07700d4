#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/robustness/attack.h"

namespace lathe::robustness {

/// How a mutant was answered; whatever else happens to it is a finding.
enum class Answer : std::uint8_t { taken, refused };

/// Mutants that are read in processes of their own, a hundred in each, so that a crash or a hang is a finding like
/// any other and costs little.
struct Mutants {
  std::function<std::string(std::uint64_t seed)> make;
  /// Throws for what must not be: an InternalError, or a Wrong. A UserError, a ParseError and std::bad_alloc count as
  /// `refused`.
  std::function<Answer(std::uint64_t seed, const std::string& mutant)> check;
  std::string ending;                 ///< of the files that findings are kept in: ".lathe"
  unsigned seconds = 60;              ///< of processor time that a hundred may take
  std::uint64_t memory = 4ull << 30;  ///< bytes of address space
};

/// A result that must not be.
class Wrong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void try_mutants(Report& report, std::int64_t by_default, const Mutants& mutants);

}  // namespace lathe::robustness
