#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// The tensor with all kept buffers of a program, in the C interface: u8[bytes], aligned to 64 bytes.
inline constexpr std::string_view packed_weights = "packed_weights";

/// Removes the launches that write kept buffers from programs of one graph for several targets. Returns programs of
/// these launches, by target, or none if there are no such launches. The tensor `packed_weights` is their output, and
/// an input of the others; it has room for the copies of each target. Launches of sizes that only a run knows are
/// part of all runs.
std::vector<Program> split_packing(std::vector<Program>& programs);

/// Returns where kept buffers start in that tensor, in bytes.
std::map<int, std::int64_t> places_in_packed(const Program& program);

}  // namespace lathe
