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
  int shared_by = 1;  ///< logical CPUs

  bool operator==(const HostCache&) const = default;
};

/// What the system says about its processors; empty or 0 where it says nothing.
struct HostCpu {
  std::string vendor, model;
  int logical_cpus = 0;            ///< online
  int physical_cores = 0;          ///< of those
  std::vector<std::string> flags;  ///< as /proc/cpuinfo names them, sorted: "avx2", "avx512f", ...
  std::vector<HostCache> caches;   ///< of CPU 0

  bool has(std::string_view flag) const;
  /// Bytes of the data or unified cache of that level; 0 if there is none.
  std::int64_t data_cache(int level) const;
  /// Some lines for people.
  std::string to_string() const;
};

HostCpu host_cpu();

/// CPUs this process may use at a time: its affinity, capped by the quota of its control group. At least 1.
int usable_cpus();

// The parts of the above that read text, for any machine's text.
HostCpu parse_cpuinfo(std::string_view text);                             ///< of /proc/cpuinfo
std::int64_t parse_cache_size(std::string_view text);                     ///< "48K" -> 49152; 0 if it is no size
int count_cpu_list(std::string_view text);                                ///< "0-3,8" -> 5
std::vector<HostCache> read_caches(const std::filesystem::path& folder);  ///< .../cpu0/cache
std::optional<int> parse_cpu_quota(std::string_view text);  ///< cpu.max: "150000 100000" -> 2; "max ..." -> none

}  // namespace lathe
