#include "ir/kernel/verify/parameter_use.h"

#include <algorithm>

#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/phases.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {

class Scan {
 public:
  explicit Scan(const Kernel& kernel) : kernel_(kernel) {
    use_.loaded.assign(kernel.buffers.size(), false);
    use_.stored.assign(kernel.buffers.size(), false);
    use_.alignment.assign(kernel.buffers.size(), 1);
  }

  ParameterUse run() {
    for (const KernelPhase& phase : phases_of(kernel_))
      look_at(phase, parameter_use(*kernel_.phase_kernels[phase.kernel]));
    for_each_statement(kernel_.body, [this](const Statement& s) {
      std::visit([this](const auto& node) { look_at(node); }, s.node);
    });
    const auto parameters = static_cast<std::size_t>(kernel_.parameter_count());
    use_.loaded.resize(parameters);
    use_.stored.resize(parameters);
    use_.alignment.resize(parameters);
    return std::move(use_);
  }

 private:
  void load(BufferId buffer) {
    if (buffer != none) use_.loaded[buffer] = true;
  }
  void store(BufferId buffer) { use_.stored[buffer] = true; }
  void align(BufferId buffer, int bytes) {
    if (buffer != none) use_.alignment[buffer] = std::max(use_.alignment[buffer], bytes);
  }

  template <class Node>
  void look_at(const Node&) {}
  void look_at(const Compute& s) {
    const Instruction& in = kernel_.values[s.value];
    load(in.buffer);
    align(in.buffer, in.alignment);
    if (!in.machine) return;
    const int bytes = in.machine->record->parameter_alignment;
    for (const IntrinsicBuffer& buffer : in.machine->buffers) {
      align(buffer.id, bytes);
      if (buffer.access != Access::write) load(buffer.id);
      if (buffer.access != Access::read) store(buffer.id);
    }
    if (in.machine->map == none) return;
    load(kernel_.maps[in.machine->map].from);
    align(kernel_.maps[in.machine->map].from, bytes);
  }
  void look_at(const Store& s) {
    store(s.buffer);
    align(s.buffer, s.alignment);
  }
  void look_at(const KernelPhase& phase, const ParameterUse& own) {
    for (std::size_t p = 0; p < phase.buffers.size(); ++p) align(phase.buffers[p].id, own.alignment[p]);
    if (own.largest_code > 0) use_.largest_code = std::max(use_.largest_code, phase.code + own.largest_code);
  }
  void look_at(const Check& s) { use_.largest_code = std::max(use_.largest_code, s.code); }

  const Kernel& kernel_;
  ParameterUse use_;
};

}  // namespace

ParameterUse parameter_use(const Kernel& kernel) { return Scan(kernel).run(); }

}  // namespace lathe::kernel
