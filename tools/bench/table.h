#pragma once

#include <string>
#include <vector>

namespace lathe::bench {

struct TableOptions {
  int threads = 1;
  bool full = false;                ///< long sequences too
  std::vector<std::string> groups;  ///< of table_groups(); empty: all
};

/// products, attention, memory-bound, steps, decode.
const std::vector<std::string>& table_groups();

/// Measures and prints, line by line: what this machine reaches, as a share of what it can do at best (the FMA peak
/// probed beside each measurement, the bandwidth, the largest live set), and the share that Lathe means to reach.
void print_table(const TableOptions& options);

}  // namespace lathe::bench
