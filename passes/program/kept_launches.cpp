#include "passes/program/kept_launches.h"

#include <algorithm>
#include <map>
#include <vector>

namespace lathe {

namespace {

/// Returns the kept buffer that a launch writes, or -1.
int kept_buffer(const Program& program, const Launch& launch) {
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  for (std::size_t p = 0; p < launch.buffers.size(); ++p)
    if (kernel.buffers[p].access != kernel::Access::read &&
        program.buffers[launch.buffers[p]].kind == ProgramBuffer::Kind::kept)
      return launch.buffers[p];
  return -1;
}

bool is_same_copy(const Program& program, const Launch& a, const Launch& b) {
  if (a.kernel != b.kernel || a.dims != b.dims || a.condition != b.condition) return false;
  return std::ranges::equal(a.buffers, b.buffers, [&](int x, int y) {
    return x == y || (program.buffers[x].kind == ProgramBuffer::Kind::kept &&
                      program.buffers[y].kind == ProgramBuffer::Kind::kept);
  });
}

void move_to_start(Program& program, const std::vector<bool>& moves) {
  const auto count = static_cast<int>(std::ranges::count(moves, true));
  std::vector<int> now = {count};  // by launch and for the end: its new number if it does not move
  for (const bool moved : moves) now.push_back(now.back() + (moved ? 0 : 1));
  std::vector<Launch> ordered;
  for (const bool moved : {true, false})
    for (std::size_t l = 0; l < moves.size(); ++l)
      if (moves[l] == moved) ordered.push_back(std::move(program.launches[l]));
  program.launches = std::move(ordered);
  for (ProgramLoop& loop : program.loops) loop.first = now[loop.first], loop.end = now[loop.end];
  for (Collective& collective : program.collectives)
    collective.start = now[collective.start], collective.done = now[collective.done];
}

/// Removes launches from the start of a program.
void remove(Program& program, const std::vector<bool>& removed) {
  const auto count = static_cast<int>(std::ranges::count(removed, true));
  std::size_t l = 0;
  std::erase_if(program.launches, [&](const Launch&) { return l < removed.size() ? removed[l++] : false; });
  for (ProgramLoop& loop : program.loops) loop.first -= count, loop.end -= count;
  for (Collective& collective : program.collectives) collective.start -= count, collective.done -= count;
}

/// Replaces kept buffers, which only launches access, and removes them from the program.
void replace(Program& program, const std::map<int, int>& by) {
  std::vector<int> now;  // by buffer
  int next = 0;
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) now.push_back(by.contains(b) ? -1 : next++);
  for (const auto& [from, to] : by) now[from] = now[to];
  const auto renumber = [&](int& buffer) {
    if (buffer >= 0) buffer = now[buffer];
  };
  const auto renumber_all = [&](Launch& launch) { std::ranges::for_each(launch.buffers, renumber); };
  std::ranges::for_each(program.launches, renumber_all);
  for (auto* slots : {&program.inputs, &program.states, &program.outputs})
    for (Program::Slot& slot : *slots) renumber(slot.buffer);
  for (Collective& collective : program.collectives)
    for (Collective::Part& part : collective.parts) {
      for (int* const buffer : {&part.from, &part.to, &part.received, &part.folded}) renumber(*buffer);
      if (part.fold) renumber_all(*part.fold);
    }
  int b = 0;
  std::erase_if(program.buffers, [&](const ProgramBuffer&) { return by.contains(b++); });
  for (ProgramBuffer& buffer : program.buffers)
    if (buffer.slice) renumber(buffer.slice->of);
}

}  // namespace

int kept_launches(const Program& program) {
  const auto other =
      std::ranges::find_if(program.launches, [&](const Launch& launch) { return kept_buffer(program, launch) < 0; });
  return static_cast<int>(other - program.launches.begin());
}

void gather_kept_launches(Program& program) {
  std::vector<bool> moves;
  for (const Launch& launch : program.launches) moves.push_back(kept_buffer(program, launch) >= 0);
  if (std::ranges::count(moves, true) == 0) return;
  move_to_start(program, moves);
  std::map<int, int> replaced;
  std::vector<bool> removed(static_cast<std::size_t>(kept_launches(program)));
  for (std::size_t l = 0; l < removed.size(); ++l) {
    Launch& launch = program.launches[l];
    // Runs that measure candidates execute these launches once, whatever candidates they skip.
    launch.tuning = nullptr, launch.candidate = 0;
    const auto first = std::ranges::find_if(
        program.launches, [&](const Launch& other) { return is_same_copy(program, other, launch); });
    removed[l] = &*first != &launch;
    if (removed[l]) replaced.emplace(kept_buffer(program, launch), kept_buffer(program, *first));
  }
  if (replaced.empty()) return;
  remove(program, removed);
  replace(program, replaced);
}

}  // namespace lathe
