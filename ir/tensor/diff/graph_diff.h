#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

struct DiffOptions {
  bool names = true;       ///< compare the names of the graph and of values
  bool locations = false;  ///< compare source lines and modules
  /// Also list each value whose type differs only because the type of an operand does.
  bool implied_types = false;
};

/// One difference between two graphs.
struct DiffLine {
  enum class Kind : std::uint8_t { inserted, removed, changed };
  enum class Part : std::uint8_t { graph, argument, value, output, update, check };
  Kind kind = Kind::changed;
  Part part = Part::value;
  std::string text;
};

/// The differences between two graphs, in graph order.
struct GraphDiff {
  std::vector<DiffLine> lines;
  int same = 0;           ///< values that are equal, arguments included
  int implied_types = 0;  ///< values that differ only in a type that follows from an operand's
  bool is_empty() const { return lines.empty(); }
};

/// Compares two graphs by structure and names (match_values.h). The position of a value among others does not count,
/// so one inserted op is one line; the line names the values that read it, and what they read before.
GraphDiff diff(const Graph& a, const Graph& b, const DiffOptions& options = {});

/// Returns a line per difference, or nothing:
///
///   + %4 = mul %3, %x : f32[n, 4] (mha.cpp:14); %5 add reads it instead of %3
///   - input %mask: bool[n]
///   ~ %7 softmax (mha.cpp:20): dim -1 -> 0
///   ~ output "y": %9 -> %8
///
/// Labels of inserted values and those after an arrow are the second graph's; the others are the first's.
std::string to_string(const GraphDiff& diff);

/// Returns counts: "1 value inserted, 2 values changed; 14 values are equal", or "no difference; 14 values are
/// equal".
std::string summary(const GraphDiff& diff);

}  // namespace lathe::ir
