#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

struct HostCache {
  int level = 0;
  std::string type;  ///< "Data", "Instruction" or "Unified"
  std::int64_t bytes = 0;
  int shared_by = 1;  ///< number of logical CPUs

  bool operator==(const HostCache&) const = default;
};

/// The system's information about its processors; empty or 0 where it is not available.
struct HostCpu {
  std::string vendor, model;
  int logical_cpus = 0;            ///< online
  int physical_cores = 0;          ///< of the online CPUs
  std::vector<std::string> flags;  ///< names of /proc/cpuinfo, sorted: "avx2", "avx512f", ...
  std::vector<HostCache> caches;   ///< caches of CPU 0

  bool has(std::string_view flag) const;
  /// Returns a description of several lines.
  std::string to_string() const;
};

HostCpu host_cpu();

/// Returns the number of CPUs this process may use concurrently: its affinity, limited by its control group's quota.
/// At least 1.
int usable_cpus();

// Parsers used by the functions above.
HostCpu parse_cpuinfo(std::string_view text);                             ///< parses /proc/cpuinfo
std::int64_t parse_cache_size(std::string_view text);                     ///< "48K" -> 49152; 0 for other text
int count_cpu_list(std::string_view text);                                ///< "0-3,8" -> 5
std::vector<HostCache> read_caches(const std::filesystem::path& folder);  ///< reads .../cpu0/cache
std::optional<int> parse_cpu_quota(std::string_view text);  ///< cpu.max: "150000 100000" -> 2; "max ..." -> none

}  // namespace lathe
