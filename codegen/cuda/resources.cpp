#include "codegen/cuda/resources.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::cuda {

namespace {

/// Returns the integer before `unit` in a line, or 0 if not found.
std::int64_t number_before(std::string_view line, std::string_view unit) {
  const auto at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  auto first = at;
  while (first > 0 && std::isdigit(static_cast<unsigned char>(line[first - 1]))) --first;
  std::int64_t value = 0;
  std::from_chars(line.data() + first, line.data() + at, value);
  return value;
}

}  // namespace

Resources parse_resources(std::string_view log, std::string_view symbol) {
  Resources r;
  bool found = false, here = false;
  const std::string compiling = fmt::format("Compiling entry function '{}'", symbol);
  for (std::size_t start = 0; start < log.size();) {
    const auto end = std::min(log.find('\n', start), log.size());
    const std::string_view line = log.substr(start, end - start);
    start = end + 1;
    if (line.find("Compiling entry function") != std::string_view::npos) here = line.find(compiling) != line.npos;
    // Reported under several codes: C7508, C7509, C7510, C7518, C7520.
    r.serialized_wgmma = r.serialized_wgmma || line.find("wgmma.mma_async instructions are serialized") != line.npos;
    if (!here) continue;
    if (line.find("bytes stack frame") != line.npos) {
      // Of the kernel, and of the functions that it calls.
      r.stack_bytes = std::max(r.stack_bytes, number_before(line, " bytes stack frame"));
      r.spill_bytes += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != line.npos) {
      found = true;
      r.registers = static_cast<int>(number_before(line, " registers"));
      r.barriers = static_cast<int>(number_before(line, " barriers"));
      r.shared_bytes = number_before(line, " bytes smem");
    }
  }
  if (!found) throw InternalError(fmt::format("ptxas reports nothing of {}  [resource_report]\n{}", symbol, log));
  return r;
}

std::string Resources::to_string() const {
  std::string text = fmt::format("{} registers", registers);
  if (shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", shared_bytes);
  if (stack_bytes > 0) text += fmt::format(", {} bytes of stack", stack_bytes);
  if (spill_bytes > 0) text += fmt::format(", {} bytes spilled", spill_bytes);
  if (serialized_wgmma) text += ", wgmma serialised";
  return text;
}

}  // namespace lathe::cuda
