#include "codegen/llvm/library/cpu/cpu_check.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "ir/support/syntax/commas.h"

namespace lathe::codegen {

namespace {

constexpr int eax = 0, ebx = 1, ecx = 2, edx = 3;

struct Feature {
  std::string_view name;  ///< LLVM's
  std::uint32_t leaf, subleaf;
  int result, bit;
};

/// Instructions that compiled code can contain, by the bit that reports them (Intel 64 and IA-32 Architectures
/// Software Developer's Manual, CPUID; AMD64 Architecture Programmer's Manual, volume 3, appendix E).
constexpr Feature features[] = {
    {"cx8", 1, 0, edx, 8},
    {"cmov", 1, 0, edx, 15},
    {"mmx", 1, 0, edx, 23},
    {"sse", 1, 0, edx, 25},
    {"sse2", 1, 0, edx, 26},
    {"sse3", 1, 0, ecx, 0},
    {"pclmul", 1, 0, ecx, 1},
    {"ssse3", 1, 0, ecx, 9},
    {"fma", 1, 0, ecx, 12},
    {"cx16", 1, 0, ecx, 13},
    {"sse4.1", 1, 0, ecx, 19},
    {"sse4.2", 1, 0, ecx, 20},
    {"crc32", 1, 0, ecx, 20},
    {"movbe", 1, 0, ecx, 22},
    {"popcnt", 1, 0, ecx, 23},
    {"aes", 1, 0, ecx, 25},
    {"xsave", 1, 0, ecx, 26},
    {"avx", 1, 0, ecx, 28},
    {"f16c", 1, 0, ecx, 29},
    {"bmi", 7, 0, ebx, 3},
    {"avx2", 7, 0, ebx, 5},
    {"bmi2", 7, 0, ebx, 8},
    {"avx512f", 7, 0, ebx, 16},
    {"avx512dq", 7, 0, ebx, 17},
    {"adx", 7, 0, ebx, 19},
    {"avx512ifma", 7, 0, ebx, 21},
    {"avx512cd", 7, 0, ebx, 28},
    {"sha", 7, 0, ebx, 29},
    {"avx512bw", 7, 0, ebx, 30},
    {"avx512vl", 7, 0, ebx, 31},
    {"avx512vbmi", 7, 0, ecx, 1},
    {"avx512vbmi2", 7, 0, ecx, 6},
    {"gfni", 7, 0, ecx, 8},
    {"vaes", 7, 0, ecx, 9},
    {"vpclmulqdq", 7, 0, ecx, 10},
    {"avx512vnni", 7, 0, ecx, 11},
    {"avx512bitalg", 7, 0, ecx, 12},
    {"avx512vpopcntdq", 7, 0, ecx, 14},
    {"avx512vp2intersect", 7, 0, edx, 8},
    {"amx-bf16", 7, 0, edx, 22},
    {"avx512fp16", 7, 0, edx, 23},
    {"amx-tile", 7, 0, edx, 24},
    {"amx-int8", 7, 0, edx, 25},
    {"avxvnni", 7, 1, eax, 4},
    {"avx512bf16", 7, 1, eax, 5},
    {"sahf", 0x80000001, 0, ecx, 0},
    {"lzcnt", 0x80000001, 0, ecx, 5},
    {"sse4a", 0x80000001, 0, ecx, 6},
};

/// Features that compiled code does not use: instructions of the system, and how others behave.
constexpr std::string_view unused[] = {
    "64bit",     "x87",      "fxsr",       "nopl",      "vzeroupper", "evex512", "fsgsbase",  "invpcid", "rtm",
    "pku",       "waitpkg",  "shstk",      "rdpid",     "cldemote",   "movdiri", "movdir64b", "enqcmd",  "uintr",
    "serialize", "tsxldtrk", "clflushopt", "clwb",      "clzero",     "mwaitx",  "ptwrite",   "rdrnd",   "rdseed",
    "rdpru",     "sgx",      "wbnoinvd",   "xsavec",    "xsaveopt",   "xsaves",  "prfchw",    "hreset",  "kl",
    "widekl",    "pconfig",  "lwp",        "prefetchi", "usermsr"};

const Feature* find(std::string_view name) {
  const auto* const found = std::ranges::find(features, name, &Feature::name);
  return found == std::end(features) ? nullptr : found;
}

/// Returns the features that LLVM may use: those of the CPU's name, changed by the list of features.
std::set<std::string> used_features(const TargetCpu& target) {
  llvm::SmallVector<llvm::StringRef> named;
  if (llvm::X86::parseArchX86(target.cpu, /*Only64Bit=*/true) != llvm::X86::CK_None)
    llvm::X86::getFeaturesForCPU(target.cpu, named);
  std::set<std::string> used;
  for (const llvm::StringRef name : named) used.insert(name.str());
  for (const std::string_view feature : syntax::at_commas(target.features)) {
    if (feature.starts_with('+')) used.emplace(feature.substr(1));
    if (feature.starts_with('-')) used.erase(std::string(feature.substr(1)));
  }
  return used;
}

}  // namespace

TargetCpu testable(const TargetCpu& target) {
  TargetCpu result = target;
  for (const std::string& name : used_features(target))
    if (!find(name) && std::ranges::find(unused, name) == std::end(unused)) {
      result.features += result.features.empty() ? "-" : ",-";
      result.features += name;
    }
  return result;
}

std::vector<CpuidBits> needs_of(const TargetCpu& target) {
  std::vector<CpuidBits> needs;
  for (const std::string& name : used_features(target)) {
    const Feature* const feature = find(name);
    if (!feature) continue;
    const auto same = std::ranges::find_if(needs, [&](const CpuidBits& each) {
      return each.leaf == feature->leaf && each.subleaf == feature->subleaf && each.result == feature->result;
    });
    CpuidBits& bits = same != needs.end()
                          ? *same
                          : needs.emplace_back(CpuidBits{feature->leaf, feature->subleaf, feature->result, 0});
    bits.mask |= std::uint32_t{1} << feature->bit;
  }
  std::ranges::sort(needs, {},
                    [](const CpuidBits& bits) { return std::tuple(bits.leaf, bits.subleaf, bits.result); });
  return needs;
}

std::uint32_t saved_registers_of(const TargetCpu& target) {
  const std::set<std::string> used = used_features(target);
  const auto any = [&](std::string_view start) {
    return std::ranges::any_of(used, [&](const std::string& name) { return name.starts_with(start); });
  };
  // Bits of XCR0: SSE 1, AVX 2, AVX-512 5 to 7, tiles 17 and 18.
  return (any("avx") ? 0x6u : 0u) | (any("avx512") ? 0xe0u : 0u) | (any("amx") ? 0x60000u : 0u);
}

}  // namespace lathe::codegen
