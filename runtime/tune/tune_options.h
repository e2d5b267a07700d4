#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/support/dim.h"

namespace lathe {

struct Program;

/// Runs a program without the skipped launches and returns the seconds of each launch.
using LaunchTimer = std::function<std::vector<double>(const Program& program, const std::vector<bool>& skipped)>;

/// Uses the fastest tiles for matmuls on this machine. Reads known choices from the cache and measures the others.
struct TuneOptions {
  DimBindings dims = {};   ///< sizes of all unknown dims in the runs to optimize
  double seconds = 60;     ///< time limit for measuring; undecided matmuls use the default and are measured next time
  LaunchTimer timer = {};  ///< empty: measure on this machine
};

/// The choice for a matmul.
struct TunedProduct {
  std::string what;                       ///< "matrix product h.*.mlp.c_fc (contract, add) gpt.cpp:83"
  std::string by_default, chosen;         ///< tile sizes, as printed by cpu::to_string
  double time = 1;                        ///< measured time relative to the default's
  bool from_cache = false, open = false;  ///< open: not decided within the time limit
};

struct TuneReport {
  std::vector<TunedProduct> products;
  double seconds = 0;  ///< spent on measuring
};

/// Returns a summary line and a line for each matmul whose choice is not the default.
std::string to_string(const TuneReport& report);

}  // namespace lathe
