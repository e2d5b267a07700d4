#include "passes/lowering/add_body.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "passes/program/program_loops.h"

namespace lathe {

namespace {

class BodyAppender {
 public:
  BodyAppender(Program& program, Program body, const LoopPlaces& places)
      : program_(program), body_(std::move(body)), places_(places) {}

  int run(int first_region) {
    add_kernels();
    loop_ = static_cast<int>(program_.loops.size());
    place_buffers();
    int last_region = first_region;
    for (Launch& launch : body_.launches) {
      for (int& buffer : launch.buffers) buffer = buffer_of_[at(buffer)];
      launch.kernel = kernel_of_[at(launch.kernel)];
      launch.info.region += first_region;
      for (LaunchOp& op : launch.info.ops) op.value = {};  // it is not of the graph around the loop
      last_region = std::max(last_region, launch.info.region);
    }
    program_.regions += body_.regions;
    add_launches();
    return last_region + 1;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Kernels get names with their numbers in the program.
  void add_kernels() {
    for (kernel::Kernel& kernel : body_.kernels) {
      const auto number = static_cast<int>(program_.kernels.size());
      kernel.name = fmt::format("k{}{}", number, kernel.name.substr(kernel.name.find('_')));
      kernel_of_.push_back(number);
      program_.kernels.push_back(std::move(kernel));
    }
  }

  int add(ProgramBuffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  int add_slice(int of, const ProgramBuffer& part, std::string_view name) {
    return add({.kind = ProgramBuffer::Kind::slice,
                .name = fmt::format("{} of an iteration", name),
                .dtype = part.dtype,
                .elements = part.elements,
                .data = {},
                .loc = part.loc,
                .slice = ProgramBuffer::Slice{
                    .of = of, .loop = loop_, .stride = part.elements.unnamed(), .reverse = places_.reverse}});
  }

  void place_buffers() {
    buffer_of_.assign(body_.buffers.size(), -1);
    for (std::size_t i = 0; i < body_.states.size(); ++i) buffer_of_[at(body_.states[i].buffer)] = places_.carries[i];
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
      const int own = body_.inputs[i].buffer, outside = places_.inputs[i];
      const bool is_sequence = static_cast<int>(i) < places_.sequences;
      buffer_of_[at(own)] = is_sequence ? add_slice(outside, body_.buffers[at(own)], body_.inputs[i].name) : outside;
    }
    for (std::size_t i = 0; i < body_.outputs.size(); ++i) {
      const int own = body_.outputs[i].buffer, outside = places_.outputs[i];
      if (outside >= 0) buffer_of_[at(own)] = add_slice(outside, body_.buffers[at(own)], body_.outputs[i].name);
    }
    for (std::size_t b = 0; b < body_.buffers.size(); ++b) {
      if (buffer_of_[b] >= 0) continue;
      ProgramBuffer& buffer = body_.buffers[b];
      if (buffer.kind == ProgramBuffer::Kind::output)
        buffer.kind = ProgramBuffer::Kind::temporary;  // no launch reads it
      if (buffer.slice) {
        buffer.slice->of = buffer_of_[at(buffer.slice->of)];
        buffer.slice->loop += loop_ + 1;
      }
      buffer_of_[b] = add(std::move(buffer));
    }
  }

  bool is_written(const Launch& launch, std::size_t parameter) const {
    return program_.kernels[at(launch.kernel)].buffers[static_cast<int>(parameter)].access != kernel::Access::read;
  }

  /// Returns how many launches of the body write each buffer of the program, or a slice of it.
  std::vector<int> count_writers() const {
    std::vector<int> writers(program_.buffers.size(), 0);
    for (const Launch& launch : body_.launches)
      for (std::size_t p = 0; p < launch.buffers.size(); ++p)
        if (is_written(launch, p)) ++writers[at(storage_of(program_, launch.buffers[p]))];
    return writers;
  }

  /// Returns which launches of the body do the same in all iterations: they read what no other launch writes, and
  /// are alone in writing temporaries.
  std::vector<bool> find_fixed() const {
    using Kind = ProgramBuffer::Kind;
    std::vector<int> writers = count_writers();
    std::vector<bool> fixed;
    for (std::size_t l = 0; l < body_.launches.size(); ++l) {
      const Launch& launch = body_.launches[l];
      const auto is_inner = [&](const ProgramLoop& loop) { return loop.contains(static_cast<int>(l)); };
      bool same = launch.checks.empty() && std::ranges::none_of(body_.loops, is_inner);
      for (std::size_t p = 0; same && p < launch.buffers.size(); ++p) {
        const int b = launch.buffers[p];
        const ProgramBuffer& buffer = program_.buffers[at(b)];
        if (buffer.kind == Kind::scratch) continue;
        const bool carried = std::ranges::find(places_.carries, b) != places_.carries.end();
        same = buffer.kind != Kind::slice && !carried &&
               (is_written(launch, p) ? buffer.kind == Kind::temporary && writers[at(b)] == 1 : writers[at(b)] == 0);
      }
      for (std::size_t p = 0; same && p < launch.buffers.size(); ++p)
        if (is_written(launch, p)) writers[at(launch.buffers[p])] = 0;  // others may read it as a fixed value
      fixed.push_back(same);
    }
    return fixed;
  }

  void add_launches() {
    const std::vector<bool> fixed = find_fixed();
    std::vector<int> now(fixed.size() + 1, 0);  // by launch of the body
    for (std::size_t l = 0; l < fixed.size(); ++l)
      if (fixed[l]) program_.launches.push_back(body_.launches[l]);
    const auto first = static_cast<int>(program_.launches.size());
    for (std::size_t l = 0; l < fixed.size(); ++l) {
      now[l] = static_cast<int>(program_.launches.size());
      if (!fixed[l]) program_.launches.push_back(std::move(body_.launches[l]));
    }
    const auto end = now[fixed.size()] = static_cast<int>(program_.launches.size());
    program_.loops.push_back(
        {.first = first, .end = end, .trips = places_.trips, .name = places_.name, .loc = places_.loc});
    for (ProgramLoop& inner : body_.loops) {
      inner.first = now[at(inner.first)];
      inner.end = now[at(inner.end)];
      program_.loops.push_back(std::move(inner));
    }
  }

  Program& program_;
  Program body_;
  const LoopPlaces& places_;
  int loop_ = 0;
  std::vector<int> kernel_of_, buffer_of_;  // by number in the body
};

}  // namespace

int add_body(Program& program, Program body, const LoopPlaces& places, int region) {
  return BodyAppender(program, std::move(body), places).run(region);
}

}  // namespace lathe
