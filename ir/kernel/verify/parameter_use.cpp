#include "ir/kernel/verify/parameter_use.h"

#include <algorithm>

#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {

class Scan {
 public:
  explicit Scan(const Kernel& kernel) : kernel_(kernel) {
    use_.loaded.assign(kernel.buffers.size(), false);
    use_.stored.assign(kernel.buffers.size(), false);
  }

  ParameterUse run() {
    for_each_statement(kernel_.body, [this](const Statement& s) {
      std::visit([this](const auto& node) { look_at(node); }, s.node);
    });
    const auto parameters = static_cast<std::size_t>(kernel_.parameter_count());
    use_.loaded.resize(parameters);
    use_.stored.resize(parameters);
    return std::move(use_);
  }

 private:
  void load(BufferId buffer) {
    if (buffer != none) use_.loaded[buffer] = true;
  }
  void store(BufferId buffer) { use_.stored[buffer] = true; }

  template <class Node>
  void look_at(const Node&) {}
  void look_at(const Compute& s) {
    const Instruction& in = kernel_.values[s.value];
    load(in.buffer);
    if (!in.machine) return;
    for (const IntrinsicBuffer& buffer : in.machine->buffers) {
      if (buffer.access != Access::write) load(buffer.id);
      if (buffer.access != Access::read) store(buffer.id);
    }
    if (in.machine->map != none) load(kernel_.maps[in.machine->map].from);
  }
  void look_at(const Store& s) { store(s.buffer); }
  void look_at(const Check& s) { use_.largest_code = std::max(use_.largest_code, s.code); }

  const Kernel& kernel_;
  ParameterUse use_;
};

}  // namespace

ParameterUse parameter_use(const Kernel& kernel) { return Scan(kernel).run(); }

}  // namespace lathe::kernel
