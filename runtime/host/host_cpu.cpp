#include "runtime/host/host_cpu.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

namespace lathe {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Returns the number at the start of `text` and the rest of the text.
std::pair<std::int64_t, std::string_view> leading_number(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc()) return {-1, text};
  return {number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

std::string bytes_text(std::int64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

bool HostCpu::has(std::string_view flag) const { return std::ranges::binary_search(flags, flag); }

std::string HostCpu::to_string() const {
  std::string text = fmt::format("cpu     {} ({})\n", model.empty() ? "unknown" : model, vendor);
  text += fmt::format("cores   {} logical, {} physical\n", logical_cpus, physical_cores);
  for (const HostCache& cache : caches)
    text += fmt::format("cache   L{} {}: {}, shared by {}\n", cache.level, cache.type, bytes_text(cache.bytes),
                        cache.shared_by);
  std::vector<std::string_view> vector_flags;
  for (const std::string& flag : flags)
    if (flag.starts_with("avx") || flag.starts_with("sse") || flag.starts_with("amx") || flag == "fma" ||
        flag == "f16c" || flag == "asimd" || flag.starts_with("sve"))
      vector_flags.push_back(flag);
  return text + fmt::format("vector  {}\n", fmt::join(vector_flags, " "));
}

HostCpu parse_cpuinfo(std::string_view text) {
  HostCpu info;
  std::set<std::pair<std::string, std::string>> cores;  // physical id, core id
  std::string package;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
    if (key == "processor") ++info.logical_cpus;
    if (key == "vendor_id" || key == "CPU implementer") info.vendor = value;
    if (key == "model name") info.model = value;
    if (key == "physical id") package = value;
    if (key == "core id") cores.emplace(package, value);
    if ((key == "flags" || key == "Features") && info.flags.empty()) info.flags = words(value);
  }
  info.physical_cores = cores.empty() ? info.logical_cpus : static_cast<int>(cores.size());
  std::ranges::sort(info.flags);
  return info;
}

std::int64_t parse_cache_size(std::string_view text) {
  const auto [number, unit] = leading_number(text);
  if (number <= 0 || number > (std::int64_t{1} << 40)) return 0;
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  return unit.empty() ? number : 0;
}

int count_cpu_list(std::string_view text) {
  int count = 0;
  while (!text.empty()) {
    const auto [first, after] = leading_number(text);
    if (first < 0) return count;
    std::int64_t last = first;
    text = after;
    if (text.starts_with('-')) std::tie(last, text) = leading_number(text.substr(1));
    count += static_cast<int>(std::clamp<std::int64_t>(last - first + 1, 0, 1 << 20));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return count;
}

std::vector<HostCache> read_caches(const fs::path& folder) {
  std::vector<HostCache> caches;
  for (int i = 0; i < 16; ++i) {
    const fs::path index = folder / fmt::format("index{}", i);
    HostCache cache;
    cache.level = static_cast<int>(leading_number(read_text(index / "level")).first);
    cache.type = read_text(index / "type");
    cache.bytes = parse_cache_size(read_text(index / "size"));
    cache.shared_by = std::max(count_cpu_list(read_text(index / "shared_cpu_list")), 1);
    if (cache.level > 0 && cache.bytes > 0) caches.push_back(cache);
  }
  return caches;
}

HostCpu host_cpu() {
  HostCpu info = parse_cpuinfo(read_text("/proc/cpuinfo"));
  info.caches = read_caches("/sys/devices/system/cpu/cpu0/cache");
  return info;
}

std::optional<int> parse_cpu_quota(std::string_view text) {
  const auto [quota, rest] = leading_number(text);
  const std::int64_t period = leading_number(trimmed(rest)).first;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>((quota - 1) / period + 1, 1, 1 << 20));
}

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const int quota = parse_cpu_quota(read_text("/sys/fs/cgroup/cpu.max")).value_or(allowed);
  return std::max(std::min(allowed, quota), 1);
}

}  // namespace lathe
