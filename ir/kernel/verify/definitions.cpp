#include "ir/kernel/verify/definitions.h"

#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/verify/rules.h"

namespace lathe::kernel {

Definitions::Definitions(const Kernel& kernel)
    : kernel_(kernel),
      defined_(kernel.values.size(), false),
      declared_(kernel.vars.size(), false),
      allocated_(kernel.buffers.size(), false),
      var_depth_(kernel.vars.size(), 0) {
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) allocated_[i] = kernel.buffers[i].space == Space::parameter;
  for (std::size_t i = 0; i < kernel.values.size(); ++i)
    defined_[i] = kernel.values[i].op == Opcode::dim || kernel.values[i].op == Opcode::constant;
}

void Definitions::forget(const Mark& mark) {
  for (; values_.size() > mark.values; values_.pop_back()) defined_[values_.back()] = false;
  for (; vars_.size() > mark.vars; vars_.pop_back()) declared_[vars_.back()] = false;
  for (; buffers_.size() > mark.buffers; buffers_.pop_back()) allocated_[buffers_.back()] = false;
}

void Definitions::define(ValueId id) {
  require(kernel_, id >= 0 && id < static_cast<int>(kernel_.values.size()), "value_range", "value {} does not exist",
          id);
  require(kernel_, !defined_[id], "single_assignment", "value {} is defined twice", id);
  defined_[id] = true;
  values_.push_back(id);
}

void Definitions::forget_last() {
  defined_[values_.back()] = false;
  values_.pop_back();
}

Type Definitions::use(ValueId id) const {
  require(kernel_, id >= 0 && id < static_cast<int>(kernel_.values.size()), "value_range", "value {} does not exist",
          id);
  const Instruction& in = kernel_.values[id];
  require(kernel_, defined_[id], "dominance", "value {} ({}) is used where it is not defined", id, name_of(in));
  return in.type;
}

void Definitions::declare(VarId id, int independent_loops) {
  require(kernel_, id >= 0 && id < static_cast<int>(kernel_.vars.size()), "var_range", "variable {} does not exist",
          id);
  require(kernel_, !declared_[id], "single_assignment", "variable {} is declared twice", id);
  declared_[id] = true;
  var_depth_[id] = independent_loops;
  vars_.push_back(id);
}

void Definitions::require_var(VarId id) const {
  require(kernel_, id >= 0 && id < static_cast<int>(kernel_.vars.size()), "var_range", "variable {} does not exist",
          id);
  require(kernel_, declared_[id], "var_scope", "variable {} is used outside its scope", id);
}

void Definitions::require_own_iteration(VarId id, int independent_loops) const {
  require(kernel_, var_depth_[id] == independent_loops, "var_across_iterations",
          "variable {} is set by independent iterations of a loop", id);
}

const BufferInfo& Definitions::allocate(BufferId id) {
  require(kernel_, id >= 0 && id < static_cast<int>(kernel_.buffers.size()), "buffer_range",
          "buffer {} does not exist", id);
  const BufferInfo& info = kernel_.buffers[id];
  require(kernel_, info.space != Space::parameter && info.count > 0, "alloc", "an alloc of {}", info.name);
  require(kernel_, !allocated_[id], "single_assignment", "{} is allocated twice", info.name);
  allocated_[id] = true;
  buffers_.push_back(id);
  return info;
}

const BufferInfo& Definitions::buffer(BufferId id, bool writes) const {
  require(kernel_, id >= 0 && id < static_cast<int>(kernel_.buffers.size()), "buffer_range",
          "buffer {} does not exist", id);
  const BufferInfo& info = kernel_.buffers[id];
  require(kernel_, allocated_[id], "buffer_scope", "{} is used outside its scope", info.name);
  require(kernel_, !writes || info.access != Access::read, "access", "a store to {}, which is only read", info.name);
  require(kernel_, writes || info.access != Access::write, "access", "a load from {}, which is only written",
          info.name);
  return info;
}

}  // namespace lathe::kernel
