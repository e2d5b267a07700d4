#include <catch2/catch.hpp>

#include "runtime/host/host_cpu.h"
#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;

TEST_CASE("cpu info: /proc/cpuinfo of an x86 machine with two cores of two threads") {
  const HostCpu info = parse_cpuinfo(
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2.0GHz\nphysical id\t: 0\ncore id\t\t: 0\n"
      "flags\t\t: fpu sse2 avx2 fma\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t: 0\nprocessor : 2\nphysical id : "
      "0\n"
      "core id : 1\nprocessor : 3\nphysical id : 0\ncore id : 1\n");
  CHECK(info.vendor == "GenuineIntel");
  CHECK(info.model == "Some CPU @ 2.0GHz");
  CHECK(info.logical_cpus == 4);
  CHECK(info.physical_cores == 2);
  CHECK(info.has("avx2"));
  CHECK_FALSE(info.has("avx"));
}

TEST_CASE("cpu info: /proc/cpuinfo of an Arm machine, and a missing file") {
  const HostCpu info =
      parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nprocessor: 1\n");
  CHECK(info.logical_cpus == 2);
  CHECK(info.physical_cores == 2);
  CHECK(info.has("sve"));
  CHECK(parse_cpuinfo("").logical_cpus == 0);
  CHECK(parse_cpuinfo("a\n:\nprocessor").flags.empty());
}

TEST_CASE("cpu info: sizes, lists and quotas") {
  CHECK(parse_cache_size("48K") == 49152);
  CHECK(parse_cache_size("32M") == 33554432);
  CHECK(parse_cache_size("") == 0);
  CHECK(parse_cache_size("-4K") == 0);
  CHECK(parse_cache_size("K") == 0);
  CHECK(parse_cache_size("4X") == 0);
  CHECK(count_cpu_list("0") == 1);
  CHECK(count_cpu_list("0-3,8") == 5);
  CHECK(count_cpu_list("") == 0);
  CHECK(count_cpu_list("x") == 0);
  CHECK(count_cpu_list("3-1") == 0);
  CHECK(count_cpu_list("0-") == 0);
  CHECK(parse_cpu_quota("max 100000") == std::nullopt);
  CHECK(parse_cpu_quota("150000 100000") == 2);
  CHECK(parse_cpu_quota("50000 100000") == 1);
  CHECK(parse_cpu_quota("") == std::nullopt);
}

TEST_CASE("cpu info: caches as listed by the system") {
  const ScratchFolder folder;
  const auto add = [&](const char* index, const char* level, const char* type, const char* size, const char* cpus) {
    std::filesystem::create_directory(folder / index);
    const std::string base = std::string(index) + "/";
    spit(folder / (base + "level"), level);
    spit(folder / (base + "type"), type);
    spit(folder / (base + "size"), size);
    spit(folder / (base + "shared_cpu_list"), cpus);
  };
  add("index0", "1\n", "Data\n", "48K\n", "0\n");
  add("index1", "1\n", "Instruction\n", "64K\n", "0\n");
  add("index2", "3\n", "Unified\n", "32768K\n", "0-7\n");
  HostCpu info;
  info.caches = read_caches(folder.path());
  CHECK(info.caches == std::vector<HostCache>{
                           {1, "Data", 48 << 10, 1}, {1, "Instruction", 64 << 10, 1}, {3, "Unified", 32 << 20, 8}});
}

TEST_CASE("cpu info: of the host") {
  CHECK(host_cpu().logical_cpus >= 1);
  CHECK(usable_cpus() >= 1);
  CHECK_FALSE(host_cpu().to_string().empty());
}
