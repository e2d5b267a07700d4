#pragma once

#include <cstdint>
#include <span>

#include "passes/remat/loop_pairs.h"

namespace lathe {

/// A pair of loops whose reader runs the saver's iterations again, `every` at a time.
struct LoopSegments {
  LoopPair pair;
  std::int64_t every = 1;  ///< divides the number of iterations
};

/// Returns the number of segments, or nothing if `every` does not divide the iterations for all sizes of unknown
/// dims.
std::optional<Dim> segment_count(const Dim& trips, std::int64_t every);

/// Rewrites pairs of loops of a prepared graph. The saver becomes a loop over segments that keeps the carries before
/// each segment; the reader becomes a loop over segments that first runs the saver's iterations of the segment. The
/// bodies of both loops stay what they are, so all results keep their bits. `pairs` are those of find_loop_pairs()
/// for this graph; a loop is in at most one of them.
///
///   %1 = loop %h, %x {body=@step, trips=T}               the last carry
///   %2 = loop %h, %x {body=@step, trips=T, result=1}     [T, ..]
///   %3 = loop %d, %2 {body=@step.gradient, trips=T, reverse=true}
/// becomes, with segments of 8 iterations and %4 = view %x {shape=[T/8, 8, ..]},
///   %5 = loop %h, %4 {body=@step.segment, trips=T/8}             the last carry
///   %6 = loop %h, %4 {body=@step.segment, trips=T/8, result=1}   [T/8, ..]: the carry before each segment
///   %7 = loop %d, %4, %6 {body=@step.gradient.segment, trips=T/8, reverse=true}
/// where @step.segment is a loop of 8 iterations of @step, and @step.gradient.segment one of @step, followed by one
/// of
/// @step.gradient.
ir::Graph checkpoint_loops(const ir::Graph& graph, std::span<const LoopSegments> pairs);

}  // namespace lathe
