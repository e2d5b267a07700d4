#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// Returns the buffer whose memory a buffer uses: what a slice is a part of, and the buffer itself otherwise.
int storage_of(const Program& program, int buffer);

/// Returns how many times a launch runs: the product of the trips of the loops that contain it.
Dim runs_of(const Program& program, int launch);

/// Returns the outermost loop that starts before this launch and repeats it: a collective can complete before it or
/// start after it, but not at the launch. Returns null if there is none.
const ProgramLoop* loop_around(const Program& program, int launch);

/// A loop of a program under one binding of the dims.
struct BoundLoop {
  struct Slice {
    int buffer, of;
    std::int64_t bytes;  ///< between the parts of consecutive iterations
    bool reverse;
  };
  std::int64_t trips = 0;
  std::vector<Slice> slices;

  /// Returns where a slice starts in an iteration, in bytes from the start of the buffer that it is a part of.
  std::int64_t offset(const Slice& slice, std::int64_t iteration) const {
    return (slice.reverse ? trips - 1 - iteration : iteration) * slice.bytes;
  }
};

/// Returns the loops of a program. Throws UserError [loop_trips] for a negative number of iterations, and
/// InternalError for a slice that is not within its buffer in all iterations.
std::vector<BoundLoop> bind_loops(const Program& program, const DimBindings& dims);

/// The order in which units of a program run: launches, or groups of launches that no loop splits.
class LoopSteps {
 public:
  LoopSteps() = default;
  /// `starts`: the first launch of each unit, and the end of the last one.
  LoopSteps(const Program& program, std::span<const int> starts);

  /// Calls run(unit) for each run of a unit, and next(loop, iteration) before each iteration of a loop. `loops` are
  /// those of bind_loops(). `iterations` holds the current iteration of each loop, and 0 outside of it.
  template <class Run, class Next>
  void run(std::span<const BoundLoop> loops, std::span<std::int64_t> iterations, Run&& run, Next&& next) const {
    for (std::size_t s = 0; s < steps_.size();) {
      const Step& step = steps_[s++];
      if (step.kind == Step::Kind::unit) {
        run(step.number);
        continue;
      }
      std::int64_t& iteration = iterations[step.number];
      iteration = step.kind == Step::Kind::begin ? 0 : iteration + 1;
      if (iteration < loops[step.number].trips) {
        next(step.number, iteration);
        if (step.kind == Step::Kind::end) s = step.to;
      } else {
        iteration = 0;
        if (step.kind == Step::Kind::begin) s = step.to;
      }
    }
  }

 private:
  struct Step {
    enum class Kind : std::uint8_t { unit, begin, end } kind = Kind::unit;
    int number = 0;      ///< of the unit or the loop
    std::size_t to = 0;  ///< begin: the step after the loop; end: the first step of its body
  };

  std::vector<Step> steps_;
};

/// Calls run(launch) for each run of each launch, in order. `where` holds the start of each buffer; before each
/// iteration of a loop, the starts of its slices are set. Throws the errors of bind_loops().
void run_launches(const Program& program, const DimBindings& dims, std::span<std::byte*> where,
                  const std::function<void(const Launch&)>& run);

}  // namespace lathe
