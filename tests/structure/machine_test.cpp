#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/structure/sources.h"

/// Facts about machines that schedules and estimates use must be in ir/hardware only.
using namespace lathe::test;

namespace {

using Faults = std::vector<std::string>;

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

/// Most lines have no digit and need no regular expressions.
bool has_digit(const std::string& code) { return code.find_first_of("0123456789") != std::string::npos; }

/// Whether code has a memory size, a rate, or a number named after a machine component: 32 << 10, 64LL << 20, 48 *
/// 1024, 16384, 3e12, 0.6e-6, constexpr int line = 64.
bool is_number_of_a_machine(const std::string& code) {
  if (!has_digit(code)) return false;
  static const std::regex shifts(R"(\b[\d']+[uUlL]* ?<< ?([12]\d|30)\b)"),
      products(R"(\* ?1024\b(?! ?[*/] ?\d)|\b1024 ?\* ?1024\b)"),
      powers(R"(\b(4'?096|8'?192|16'?384|32'?768|65'?536|131'?072|262'?144|524'?288|1'?048'?576)\b)"),
      rates(R"(\b[\d.]+e(6|7|8|9|1[0-4]|-9)\b|\b(?!1e-6\b)[\d.]+e-6\b)"),
      names(
          R"re(\bconstexpr\b.*\b(l[123]|(cache_)?lines?|\w+_line_bytes|page(_bytes)?|warps?|warp_threads|registers|)re"
          R"re((static|most)_shared(_bytes)?|most_(block_)?threads|bandwidth|\w+_work|prefetch_(distance|bytes)|)re"
          R"re((\w+_)?stages|work_of_byte|huge_page|streams))re"
          R"re(( = |\{)\d)re");
  return std::ranges::any_of(std::array{&shifts, &products, &powers, &rates, &names},
                             [&](const std::regex* written) { return std::regex_search(code, *written); });
}

/// Removes powers of ten that convert seconds, bytes and operations to readable units.
std::string without_units(const std::string& code) {
  if (code.find("1e") == std::string::npos) return code;
  static const std::regex unit(R"([*/] ?1e-?\d+\b|\b1e-?\d+ ?\*)");
  return std::regex_replace(code, unit, "");
}

/// Whether a schedule has a plain number with at least two digits: 2 * 64 * 48, "rows >= 512". It needs a name if it
/// is the schedule's choice, or an entry in ir/hardware if it is a property of the machine.
bool is_plain_number(const std::string& code) {
  if (!has_digit(code)) return false;
  static const std::regex number(R"((^|[^\w.'"#<+]|[^p]\+)[1-9]['\d]*\d\b(?![.'"]))"), text(R"("([^"\\]|\\.)*")"),
      named(R"(\bconstexpr\b|\bstatic_assert\b|^ *case )");
  return !std::regex_search(code, named) && std::regex_search(std::regex_replace(code, text, ""), number);
}

/// Numbers that are facts of an algorithm, a format or an encoding, independent of the machine: a file and part of
/// the line.
struct OtherNumber {
  std::string file, text;
};
const std::vector<OtherNumber>& other_numbers() {
  static const std::vector<OtherNumber> numbers{
      {"passes/cpu/gemm/gemm_plan.cpp", "most_copied = 4096"},             // maximum scratch of a kernel
      {"passes/cpu/gemm/gemm_plan.cpp", "most_packed = 4096"},             // the same
      {"passes/cpu/gemm/gemm_few_rows.cpp", "usual_k = 4096"},             // common sizes of matmuls
      {"passes/cpu/gemm/gemm_few_rows.cpp", "all_of_k = 1'048'576"},       // no limit
      {"passes/gpu/reduction/long_reduction.cpp", "many = 1'048'576"},     // the same
      {"passes/fusion/region_size.h", "most_code = 4096"},                 // statements in a kernel
      {"codegen/cuda/prelude/prelude_casts.cpp", "112u << 23"},            // an exponent of f32
      {"codegen/llvm/casts.cpp", "112 << 23"},                             // the same
      {"codegen/cuda/intrinsics/wgmma.cpp", "u64(shared_address(first)"},  // fields of a descriptor
      {"ir/mesh/mesh.cpp", "most = 1 << 20"},                              // processes in a mesh
      {"passes/shard/predict/rank_scaling.h", "most_ranks = 4096"},        // processes in a prediction
      {"passes/shard/predict/step_rates.h", " flops = 1e12;"},             // default rate
      {"passes/shard/predict/step_rates.h", "plain_flops = 1e12;"},        // the same
      {"runtime/host/host_cpu.cpp", "bytes >= 1 << 20 ?"},                 // prints bytes in MiB
      {"runtime/host/host_cpu.cpp", "first + 1, 0, 1 << 20)"},             // limits the CPUs in a list
      {"runtime/host/host_cpu.cpp", "period + 1, 1, 1 << 20)"},            // the same for a quota
      {"runtime/train/trainer.cpp", "steps_reserved = 65536"}};            // range of random numbers
  return numbers;
}
bool is_other_number(const std::string& path, const std::string& code) {
  return std::ranges::any_of(other_numbers(), [&](const OtherNumber& other) {
    return other.file == path && code.find(other.text) != std::string::npos;
  });
}

Faults numbers_in(const std::vector<std::string>& folders) {
  Faults found;
  for (const SourceFile& file : source_files()) {
    const bool is_schedule =
        file.is_cpp() &&
        std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) { return file.is_in(folder); });
    for (std::size_t i = 0; is_schedule && i < file.lines.size(); ++i)
      if (const std::string code = without_comment(file.lines[i]);
          is_number_of_a_machine(without_units(code)) && !is_other_number(file.path, code))
        found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  return found;
}

Faults plain_numbers_in(const std::vector<std::string>& folders) {
  Faults found;
  for (const SourceFile& file : source_files()) {
    const bool is_schedule =
        file.is_cpp() &&
        std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) { return file.is_in(folder); });
    std::string statement;  // its lines so far
    for (std::size_t i = 0; is_schedule && i < file.lines.size(); ++i) {
      const std::string code = without_comment(file.lines[i]);
      statement += code;
      if (is_plain_number(code) && statement.find("constexpr") == std::string::npos)
        found.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
      if (code.find_first_of(";{}") != std::string::npos && !code.ends_with(",")) statement.clear();
    }
  }
  return found;
}

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

}  // namespace

TEST_CASE("machine: schedules and estimates contain no cache, memory or rate constants") {
  CHECK(numbers_in({"passes/cpu", "passes/gpu", "passes/fusion", "passes/lowering", "passes/memory", "passes/remat",
                    "passes/chunks", "codegen"}) == Faults{});
}

TEST_CASE("machine: runtime and sharding contain no such constants either") {
  Faults found = numbers_in({"passes/shard", "runtime"});
  // Text and file code has its own limits, set by formats and tokenizers; schedules do not use it.
  std::erase_if(found, [](const std::string& fault) { return fault.starts_with("runtime/files/"); });
  CHECK(found == Faults{});
}

TEST_CASE("machine: numbers in schedules are named, or come from the hardware entry") {
  CHECK(plain_numbers_in({"passes/cpu", "passes/gpu"}) == Faults{});
  CHECK_FALSE(plain_numbers_in({"ir/hardware"}).empty());
  for (const char* code : {"tile.mc = 64;", "if (m <= 16) {", "at_most(query.n, 128)", "std::min(1024, scratch)",
                           "x ? 256 : 512;", "int steps_ = 16;", "{128, 128, 2}", "1'048'576 / n"})
    CHECK(is_plain_number(code));
  for (const char* code : {"constexpr int side = 16;", "std::int64_t x = i * 4;", "name_64(16_x)", "value(\"of 64\")",
                           "0x1.8p+19", "f32 x16"})
    CHECK_FALSE(is_plain_number(code));
}

TEST_CASE("machine: listed exceptions still exist") {
  for (const OtherNumber& other : other_numbers()) {
    INFO(other.file << ": " << other.text);
    CHECK(read_source(other.file).find(other.text) != std::string::npos);
  }
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

TEST_CASE("machine: an entry has only non-static fields") {
  Faults found;
  for (const char* text : {"CpuInfo::", "GpuInfo::"})
    for (std::string& fault :
         lines_with({"ir", "frontend", "passes", "codegen", "runtime", "models", "tools", "bench"}, text))
      if (fault.find(std::string("&") + text) == std::string::npos) found.push_back(std::move(fault));
  CHECK(found == Faults{});
}

TEST_CASE("machine: the checker recognizes hardware constants") {
  for (const char* code :
       {"constexpr int l1 = 32 << 10;", "x <= 1 << 20;", "bytes <= 48 * 1024;", "constexpr double memory = 3e12;",
        "constexpr int caches = 32<<20;", "least_saved = 64LL << 20;", "x = 1 << 15;", "large = 16384;",
        "all = 1'048'576;", "bytes = 1024 * 1024;", "seconds = 0.6e-6;", "hertz = 2500e6;",
        "constexpr std::uint64_t line = 64;", "constexpr int registers = 512, kept = 24;",
        "inline constexpr int warp_threads = 32;", "constexpr double memory_work = 32;",
        "constexpr int most_threads{1024};", "constexpr int most_stages = 4;",
        "constexpr std::int64_t work_of_byte = 2;"})
    CHECK(is_number_of_a_machine(code));
  for (const char* code : {"giga = 1e9 * rate;", "text(seconds * 1e6)", "flops * 1e-9,"})
    CHECK(is_number_of_a_machine(code) != is_number_of_a_machine(without_units(code)));
  CHECK(is_number_of_a_machine(without_units("rate = 2.5e9 * cores;")));
  for (const char* code :
       {"1ULL << d", "const int a = 4;", "slice = 1 << 9;", "eps = 1e-6;", "kc = 1024 * 4 / bytes", "x = 0x16384p0;",
        "constexpr std::uint64_t line = cache_line_bytes;", "constexpr int most_threads = kernel::warp_threads;",
        "fma(k, 9.0580006145e-06f, s)", "inline constexpr int inline_limit = 64;"})
    CHECK_FALSE(is_number_of_a_machine(code));
  CHECK_FALSE(numbers_in({"ir/hardware"}).empty());
}

TEST_CASE("machine: launch properties come from its record, not from the kernel name") {
  for (const char* text : {"kernel.name.find(", ".name.starts_with(\"k", "notes.find", "note.starts_with("})
    CHECK(lines_with({"runtime", "tools", "passes/explain"}, text) == Faults{});
}
