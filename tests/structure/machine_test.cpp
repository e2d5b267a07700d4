#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/sources.h"

/// Facts about machines are entries in ir/hardware, which code receives. Tuned sizes are next to the schedules.
using namespace lathe::test;

namespace {

using Faults = std::vector<std::string>;

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

/// Returns the lines of files in a folder that contain a text.
Faults lines_with(const std::vector<std::string>& folders, const std::string& text) {
  Faults found;
  for (const SourceFile& file : source_files())
    for (const std::string& folder : folders)
      for (std::size_t i = 0; file.is_in(folder) && i < file.lines.size(); ++i)
        if (without_comment(file.lines[i]).find(text) != std::string::npos)
          found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  return found;
}

/// Returns the names of the structs that the headers of a folder define.
std::set<std::string> structs_in(const std::string& folder) {
  constexpr std::string_view start = "struct ";
  std::set<std::string> names;
  for (const SourceFile& file : source_files())
    for (const std::string& line : file.lines)
      if (file.is_in(folder) && file.is_header() && line.starts_with(start))
        names.insert(line.substr(start.size(), line.find_first_of(" {;", start.size()) - start.size()));
  return names;
}

}  // namespace

TEST_CASE("machine: hardware entries hold facts, and no tuned sizes of schedules") {
  const std::set<std::string> facts{"CpuCache",    "CpuInfo",         "GpuInfo",
                                    "NetworkInfo", "VectorRegisters", "WarpgroupRegisters"};
  CHECK(structs_in("ir/hardware") == facts);
}

TEST_CASE("machine: schedules and estimates receive a target entry, and do not create one") {
  Faults found;
  for (const char* text : {"CpuInfo{}", "GpuInfo{}", "CpuInfo()", "GpuInfo()", "cpu_machine({})", "gpu_machine({})",
                           "CpuInfo cpu{}", "GpuInfo gpu{}", "CpuInfo& cpu = {}", "GpuInfo& gpu = {}"})
    for (std::string& fault :
         lines_with({"ir", "frontend", "passes", "codegen", "runtime", "models", "tools", "bench"}, text)) {
      if (!fault.starts_with("ir/hardware/")) found.push_back(std::move(fault));
    }
  CHECK(found == Faults{});
}

TEST_CASE("machine: launch properties come from its record, not from the kernel name") {
  for (const char* text : {"kernel.name.find(", ".name.starts_with(\"k", "notes.find", "note.starts_with("})
    CHECK(lines_with({"runtime", "tools", "passes/explain"}, text) == Faults{});
}
