#pragma once

#include <string>
#include <vector>

namespace lathe::bench {

struct TableOptions {
  int threads = 1;
  bool full = false;                ///< include long sequences
  std::vector<std::string> groups;  ///< of table_groups(); empty: all
};

/// Returns the names of all groups: products, attention, memory-bound, steps, decode.
const std::vector<std::string>& table_groups();

/// Measures and prints, line by line: the achieved performance, its share of the hardware limit, and the target
/// share. Limits are the FMA peak measured alternately with each case, the memory bandwidth, and the largest live
/// set.
void print_table(const TableOptions& options);

}  // namespace lathe::bench
