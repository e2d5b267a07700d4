#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/support/dim.h"

namespace lathe {

struct Program;

/// Runs a program without the launches that are skipped, and gives the seconds of each of the others.
using LaunchTimer = std::function<std::vector<double>(const Program& program, const std::vector<bool>& skipped)>;

/// Products take the tiles that are fastest on this machine: those that the cache knows, the rest is measured.
struct TuneOptions {
  DimBindings dims = {};   ///< the runs that are to be fast: a size of every unknown dim
  double seconds = 60;     ///< to measure for at most; what is open then takes the default, and its turn next time
  LaunchTimer timer = {};  ///< empty: the machine
};

/// The candidate that a product takes.
struct TunedProduct {
  std::string what;                       ///< "matrix product h.*.mlp.c_fc (contract, add) gpt.cpp:83"
  std::string by_default, chosen;         ///< tile sizes, as cpu::to_string names them
  double time = 1;                        ///< of the default's, as it was measured
  bool from_cache = false, open = false;  ///< open: the time was up before it was decided
};

struct TuneReport {
  std::vector<TunedProduct> products;
  double seconds = 0;  ///< of measuring
};

/// A line on all of it, and one for each product that takes another candidate than by default.
std::string to_string(const TuneReport& report);

}  // namespace lathe
