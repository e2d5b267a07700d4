#include "passes/lowering/verify/verify_loops.h"

#include <fmt/core.h>

#include <numeric>

#include "ir/support/error.h"
#include "passes/lowering/verify/sample_sizes.h"
#include "passes/program/program_loops.h"
#include "passes/program/text/print_program.h"

namespace lathe {

namespace {

bool is_within(const ProgramLoop& inner, const ProgramLoop& outer) {
  return outer.first <= inner.first && inner.end <= outer.end;
}

std::string loop_text(const ProgramLoop& loop) {
  return fmt::format("the loop {} over launches {} to {}", loop.name, loop.first, loop.end - 1);
}

std::optional<LoopFault> range_fault(const Program& program, std::size_t number) {
  const ProgramLoop& loop = program.loops[number];
  const auto fault = [&](std::string_view what) {
    return LoopFault{"program_loop", loop_text(loop) + std::string(what)};
  };
  if (loop.first < 0 || loop.first >= loop.end || loop.end > static_cast<int>(program.launches.size()))
    return fault(" has no launches, or some that do not exist");
  if (const auto trips = loop.trips.value(); trips && *trips < 0) return fault(fmt::format(" runs {} times", *trips));
  for (std::size_t other = 0; other < number; ++other) {
    const ProgramLoop& before = program.loops[other];
    const bool is_apart = before.end <= loop.first || loop.end <= before.first;
    if (!is_apart && !is_within(loop, before))
      return fault(is_within(before, loop) ? " must come before " + loop_text(before) + ", which is in it"
                                           : " overlaps with " + loop_text(before));
  }
  return std::nullopt;
}

std::optional<LoopFault> slice_fault(const Program& program, const ProgramBuffer& buffer) {
  const auto fault = [&](const std::string& what) {
    return LoopFault{"program_slice", fmt::format("slice {}: {}", buffer.name, what)};
  };
  const ProgramBuffer::Slice& slice = *buffer.slice;
  if (slice.of < 0 || slice.of >= static_cast<int>(program.buffers.size()))
    return fault(fmt::format("there is no buffer {}", slice.of));
  if (slice.loop < 0 || slice.loop >= static_cast<int>(program.loops.size()))
    return fault(fmt::format("there is no loop {}", slice.loop));
  const ProgramBuffer& of = program.buffers[slice.of];
  if (of.dtype != buffer.dtype)
    return fault(fmt::format("it is {}, and {} is {}", name(buffer.dtype), of.name, name(of.dtype)));
  if (of.kind == ProgramBuffer::Kind::scratch) return fault(fmt::format("{} is scratch", of.name));
  if (!of.slice) return std::nullopt;
  const int outer = of.slice->loop;
  if (outer < 0 || outer >= slice.loop || !is_within(program.loops[slice.loop], program.loops[outer]))
    return fault(fmt::format("{} is a slice by the loop {}, which is not around {}", of.name, outer, slice.loop));
  return std::nullopt;
}

/// Returns the greatest number that divides a size for all values of its unknowns; 0 for 0.
std::int64_t known_divisor(const Dim& size) {
  std::int64_t divisor = 0;
  for (const Dim::Term& term : size.terms()) divisor = std::gcd(divisor, term.coefficient);
  return divisor;
}

}  // namespace

std::optional<LoopFault> find_loop_fault(const Program& program) {
  for (std::size_t l = 0; l < program.loops.size(); ++l)
    if (auto fault = range_fault(program, l)) return fault;
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.slice)
      if (auto fault = slice_fault(program, buffer)) return fault;
  if (program.loops.empty()) return std::nullopt;
  for (const DimBindings& sizes : sample_sizes(program)) try {
      bind_loops(program, sizes);
    } catch (const InternalError& error) {
      return LoopFault{"program_slice", error.message()};
    } catch (const UserError&) {  // sizes that do not fit 64 bits, or fewer iterations than 0
    }
  return std::nullopt;
}

bool starts_at_multiples(const Program& program, int buffer, int bytes) {
  for (; program.buffers[buffer].slice; buffer = program.buffers[buffer].slice->of) {
    const auto size = static_cast<std::int64_t>(size_in_bytes(program.buffers[buffer].dtype));
    if (known_divisor(program.buffers[buffer].slice->stride) * size % bytes != 0) return false;
  }
  return true;
}

}  // namespace lathe
