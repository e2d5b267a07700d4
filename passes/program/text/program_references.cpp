#include "passes/program/text/program_references.h"

#include <fmt/core.h>

#include "ir/support/nearest.h"

namespace lathe::detail {

int References::use_buffer() {
  const Token token = take_name(in_, "the name of a buffer");
  const auto [entry, is_new] = uses_.try_emplace(text_of(token), static_cast<int>(first_uses_.size()));
  if (is_new) first_uses_.push_back(token);
  return entry->second;
}

void References::declare_buffer(const Token& label, int number) {
  if (!declared_.try_emplace(text_of(label), number).second)
    in_.fail(label, fmt::format("{} is declared already", label.spelling), "rename this buffer");
}

std::vector<int> References::numbers_of_uses() const {
  std::vector<int> buffers;
  std::vector<std::string_view> names;
  for (const auto& [label, number] : declared_) names.push_back(label);
  for (const Token& use : first_uses_) {
    const auto found = declared_.find(text_of(use));
    if (found == declared_.end())
      in_.fail(use, fmt::format("there is no buffer {}", use.spelling), did_you_mean(text_of(use), names));
    buffers.push_back(found->second);
  }
  return buffers;
}

void References::resolve(Program& program) const {
  const std::vector<int> buffers = numbers_of_uses();
  const auto resolve = [&](int& buffer) {
    if (buffer >= 0) buffer = buffers[buffer];
  };
  const auto resolve_all = [&](Launch& launch) {
    for (int& buffer : launch.buffers) resolve(buffer);
  };
  for (Launch& launch : program.launches) resolve_all(launch);
  for (JoinedLaunches& joined : program.joined) resolve_all(joined.launch);
  for (Collective& collective : program.collectives) {
    if (collective.start == after_all) collective.start = collective.done = static_cast<int>(program.launches.size());
    for (Collective::Part& part : collective.parts) {
      for (int* buffer : {&part.from, &part.to, &part.received, &part.folded}) resolve(*buffer);
      if (part.fold) resolve_all(*part.fold);
    }
  }
  for (auto* slots : {&program.inputs, &program.states, &program.outputs})
    for (Program::Slot& slot : *slots) resolve(slot.buffer);
  for (ProgramBuffer& buffer : program.buffers)
    if (buffer.slice) resolve(buffer.slice->of);
  for (const NumberUse& use : launch_uses_) check(use, program.launches.size(), "launch");
  for (const NumberUse& use : loop_uses_) check(use, program.loops.size(), "loop");
  for (const KernelUse& use : kernel_uses_) check(program, use);
}

void References::check(const NumberUse& use, std::size_t count, std::string_view what) const {
  if (static_cast<std::size_t>(use.number) < count) return;
  in_.fail(use.at, fmt::format("there is no {} {}", what, use.number),
           fmt::format("the program has {} {}{}", count, what,
                       count == 1       ? ""
                       : what == "loop" ? "s"
                                        : "es"));
}

void References::check(const Program& program, const KernelUse& use) const {
  if (use.kernel >= static_cast<int>(program.kernels.size()))
    in_.fail(use.at, fmt::format("there is no kernel {}", use.kernel),
             fmt::format("the program has {} kernels", program.kernels.size()));
  const kernel::Kernel& kernel = program.kernels[use.kernel];
  if (kernel.name != use.name.value)
    in_.fail(use.name, fmt::format("kernel {} is called @{}", use.kernel, kernel.name));
  const auto buffers = static_cast<std::size_t>(kernel.parameter_count());
  if (use.buffers != buffers || use.dims != kernel.dims.size())
    in_.fail(use.name, fmt::format("{} buffers and {} dims are given, and @{} has {} and {}", use.buffers, use.dims,
                                   kernel.name, buffers, kernel.dims.size()));
}

}  // namespace lathe::detail
