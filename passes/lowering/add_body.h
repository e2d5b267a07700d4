#pragma once

#include <string>
#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// The buffers of a loop in the program around it.
struct LoopPlaces {
  Dim trips = 0;
  bool reverse = false;
  std::string name = {};
  Location loc = {};
  std::vector<int> carries = {};  ///< by state of the body; they hold the first values
  std::vector<int> inputs = {};   ///< by input of the body: first the sequences, then the invariants
  int sequences = 0;
  std::vector<int> outputs = {};  ///< by output of the body; -1 if it is not used
};

/// Appends the launches of a body as a loop. Launches that compute the same in all iterations, such as those that
/// pack the weights of a product, come before it. `region`: the number of the first region of the body. Returns that
/// after its last one.
int add_body(Program& program, Program body, const LoopPlaces& places, int region);

}  // namespace lathe
