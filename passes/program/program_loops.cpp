#include "passes/program/program_loops.h"

#include <fmt/core.h>

#include <numeric>

#include "ir/support/error.h"

namespace lathe {

int storage_of(const Program& program, int buffer) {
  while (const auto& slice = program.buffers[buffer].slice) buffer = slice->of;
  return buffer;
}

Dim runs_of(const Program& program, int launch) {
  Dim runs = 1;
  for (const ProgramLoop& loop : program.loops)
    if (loop.contains(launch)) runs = runs * loop.trips;
  return runs;
}

const ProgramLoop* loop_around(const Program& program, int launch) {
  for (const ProgramLoop& loop : program.loops)
    if (loop.first < launch && launch < loop.end) return &loop;
  return nullptr;
}

std::vector<BoundLoop> bind_loops(const Program& program, const DimBindings& dims) {
  std::vector<BoundLoop> bound;
  for (const ProgramLoop& loop : program.loops) {
    const std::int64_t trips = loop.trips.evaluate(dims);
    if (trips < 0)
      throw UserError(loop.loc, "a loop",
                      fmt::format("{} runs {} = {} times", loop.name, loop.trips.to_string(), trips), "loop_trips",
                      "pass sizes with which it runs 0 times or more");
    bound.push_back({trips, {}});
  }
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (!buffer.slice) continue;
    const ProgramBuffer::Slice& slice = *buffer.slice;
    BoundLoop& loop = bound[slice.loop];
    const std::int64_t stride = slice.stride.evaluate(dims), own = buffer.elements.evaluate(dims),
                       all = program.buffers[slice.of].elements.evaluate(dims);
    // Divides instead of multiplying, which could overflow.
    const bool fits = loop.trips == 0 || own == 0 ||
                      (stride >= 0 && own <= all && (stride == 0 || (all - own) / stride >= loop.trips - 1));
    if (!fits)
      throw InternalError(fmt::format(
          "{} has {} elements in each of {} iterations of {}, at a stride of {}, and {} has {}", buffer.name, own,
          loop.trips, program.loops[slice.loop].name, stride, program.buffers[slice.of].name, all));
    loop.slices.push_back({static_cast<int>(b), slice.of,
                           stride * static_cast<std::int64_t>(size_in_bytes(buffer.dtype)), slice.reverse});
  }
  return bound;
}

LoopSteps::LoopSteps(const Program& program, std::span<const int> starts) {
  const auto loops = static_cast<int>(program.loops.size());
  std::vector<std::size_t> begins(program.loops.size());  // by loop: its first step
  for (std::size_t unit = 0; unit + 1 < starts.size(); ++unit) {
    for (int l = 0; l < loops; ++l)
      if (program.loops[l].first == starts[unit]) {
        begins[l] = steps_.size();
        steps_.push_back({Step::Kind::begin, l, 0});
      }
    steps_.push_back({Step::Kind::unit, static_cast<int>(unit), 0});
    for (int l = loops - 1; l >= 0; --l)
      if (program.loops[l].end == starts[unit + 1]) {
        steps_.push_back({Step::Kind::end, l, begins[l] + 1});
        steps_[begins[l]].to = steps_.size();
      }
  }
}

void run_launches(const Program& program, const DimBindings& dims, std::span<std::byte*> where,
                  const std::function<void(const Launch&)>& run) {
  const std::vector<BoundLoop> loops = bind_loops(program, dims);
  std::vector<std::int64_t> iterations(loops.size());
  std::vector<int> starts(program.launches.size() + 1);
  std::iota(starts.begin(), starts.end(), 0);
  LoopSteps(program, starts)
      .run(
          loops, iterations, [&](int launch) { run(program.launches[launch]); },
          [&](int loop, std::int64_t iteration) {
            for (const BoundLoop::Slice& slice : loops[loop].slices)
              where[slice.buffer] = where[slice.of] + loops[loop].offset(slice, iteration);
          });
}

}  // namespace lathe
