#include "codegen/cuda/uses.h"

#include "codegen/cuda/expressions.h"
#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

using kernel::none;
using kernel::ValueId;

namespace {

class Counter {
 public:
  explicit Counter(const kernel::Kernel& kernel)
      : kernel_(kernel), home_(kernel.values.size(), -1), consumes_(kernel.values.size(), 0) {
    block(kernel.body);
  }

  std::vector<bool> used_once() const {
    std::vector<bool> once;
    for (std::size_t i = 0; i < consumes_.size(); ++i)
      once.push_back(consumes_[i] == 1 && home_[i] >= 0 && is_pure(kernel_.values[i]));
    return once;
  }

 private:
  /// A use in another block counts twice, so that the value is not inlined.
  void use(ValueId id) {
    if (id == none) return;
    const auto at = static_cast<std::size_t>(id);
    consumes_[at] += home_[at] == here_ ? 1 : 2;
  }

  void block(const kernel::Block& statements) {
    const int outer = here_;
    here_ = next_++;
    for (const kernel::Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
    here_ = outer;
  }

  void statement(const kernel::Compute& s) {
    const kernel::Instruction& in = kernel_.values[s.value];
    for (const ValueId arg : in.args) use(arg);
    use(in.mask);
    home_[s.value] = here_;
  }
  void statement(const kernel::Store& s) {
    for (const ValueId id : {s.index, s.stride, s.value, s.mask}) use(id);
  }
  void statement(const kernel::Prefetch& s) { use(s.index); }
  void statement(const kernel::SetVar& s) { use(s.value); }
  void statement(const kernel::Alloc&) {}
  void statement(const kernel::Barrier&) {}
  void statement(const kernel::Check& s) { use(s.condition); }
  void statement(const kernel::Branch& s) {
    use(s.condition);
    block(s.then_block);
    block(s.else_block);
  }
  void statement(const kernel::IntrinsicRegion& s) {
    for (const kernel::Block& body : s.bodies) block(body);
  }
  void statement(const kernel::Loop& s) {
    // The bound is part of a condition evaluated in every iteration, and appears twice in a mapped loop.
    for (const ValueId id : {s.lo, s.hi, s.step}) use(id), use(id);
    block(s.body);
  }

  const kernel::Kernel& kernel_;
  std::vector<int> home_, consumes_;  // by value
  int here_ = -1, next_ = 0;
};

}  // namespace

std::vector<bool> used_once(const kernel::Kernel& kernel) { return Counter(kernel).used_once(); }

std::vector<bool> summed_later(const kernel::Kernel& kernel) {
  std::vector<bool> summed(kernel.vars.size());
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const kernel::Instruction* in = kernel::intrinsic_operation(kernel, s);
    if (!in || kernel::record_of(*in)->sums != kernel::OfSums::adds_later) return;
    for (const kernel::VarId var : in->machine->vars) summed[static_cast<std::size_t>(var)] = true;
  });
  return summed;
}

}  // namespace lathe::cuda
