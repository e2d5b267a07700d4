#include "runtime/library/split_packing.h"

#include <fmt/core.h>

#include <algorithm>

#include "passes/memory/memory_plan.h"
#include "passes/program/kept_launches.h"

namespace lathe {

namespace {

std::int64_t packed_bytes(const Program& program) {
  std::int64_t bytes = 0;
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.kind == ProgramBuffer::Kind::kept) bytes += buffer_bytes(buffer, {});
  return bytes;
}

void add_packed(Program& program, std::int64_t bytes, ProgramBuffer::Kind kind, std::vector<Program::Slot>& slots) {
  const auto number = static_cast<int>(program.buffers.size());
  program.buffers.push_back(
      {.kind = kind, .name = std::string(packed_weights), .dtype = u8, .elements = bytes, .data = {}, .loc = {}});
  slots.push_back({std::string(packed_weights), u8, Shape{bytes}, number});
}

/// Returns a program of the launches that pack, for all sizes.
Program packing_of(const Program& program) {
  Program packs;
  packs.name = program.name + "_pack";
  packs.kernels = program.kernels;
  packs.buffers = program.buffers;
  packs.launches.assign(program.launches.begin(), program.launches.begin() + kept_launches(program));
  for (Launch& launch : packs.launches) launch.condition.reset();
  packs.states = program.states;
  for (Program::Slot& slot : packs.states) slot.is_updated = false;
  return packs;
}

bool reads(const Program& program, const Program::Slot& slot) {
  return std::ranges::any_of(program.launches, [&](const Launch& launch) {
    return std::ranges::find(launch.buffers, slot.buffer) != launch.buffers.end();
  });
}

/// Removes the states that no program reads. All targets have the same ones, in order.
void remove_unread_states(std::vector<Program>& programs) {
  std::vector<bool> is_read(programs[0].states.size());
  for (const Program& program : programs)
    for (std::size_t i = 0; i < is_read.size(); ++i) is_read[i] = is_read[i] || reads(program, program.states[i]);
  for (Program& program : programs) {
    std::size_t i = 0;
    std::erase_if(program.states, [&](const Program::Slot&) { return !is_read[i++]; });
  }
}

}  // namespace

std::vector<Program> split_packing(std::vector<Program>& programs) {
  std::vector<Program> packing;
  std::int64_t most = 0;
  for (const Program& program : programs) {
    packing.push_back(packing_of(program));
    most = std::max(most, packed_bytes(program));
  }
  if (most == 0) return {};
  remove_unread_states(packing);
  for (std::size_t target = 0; target < programs.size(); ++target) {
    Program& program = programs[target];
    const int kept = kept_launches(program);
    program.launches.erase(program.launches.begin(), program.launches.begin() + kept);
    for (ProgramLoop& loop : program.loops) loop.first -= kept, loop.end -= kept;
    add_packed(program, most, ProgramBuffer::Kind::input, program.inputs);
    add_packed(packing[target], most, ProgramBuffer::Kind::output, packing[target].outputs);
  }
  return packing;
}

std::map<int, std::int64_t> places_in_packed(const Program& program) {
  std::map<int, std::int64_t> places;
  std::int64_t at = 0;
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
    if (program.buffers[b].kind != ProgramBuffer::Kind::kept) continue;
    places[b] = at;
    at += buffer_bytes(program.buffers[b], {});
  }
  return places;
}

}  // namespace lathe
