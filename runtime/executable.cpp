#include "runtime/executable.h"

#include <mutex>
#include <optional>
#include <shared_mutex>

#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "passes/memory/memory_plan.h"
#include "runtime/executable_impl.h"
#include "runtime/executable_program.h"
#include "runtime/parameters/parameter_store.h"
#include "runtime/ranks/agreement.h"

namespace lathe {

template <class Inputs, class Outputs>
void Executable::Impl::run(const Inputs& inputs, Outputs& outputs, const DimBindings& dims,
                           std::vector<LaunchTime>* times) {
  const std::lock_guard turn(running);
  const FloatEnvironment environment;
  std::optional<UserError> not_finite;
  ending_all([&] {
    if (watch) watch->keep(parameters);
    run_on_store(inputs, outputs, dims, times);
    if (!watch) return;
    std::vector<HostTensor> copies;
    not_finite = watch->check(
        parameters, views_of(outputs, copies),
        [&](std::span<const std::string> names) { return binder->copies(names); }, dims);
  });
  // All ranks throw this error, so that none waits for another one: the ranks can be used further.
  if (not_finite) throw UserError(*not_finite);
}

/// A run holds the store, in shared mode where it changes nothing in it.
template <class Inputs, class Outputs>
void Executable::Impl::run_on_store(const Inputs& inputs, Outputs& outputs, const DimBindings& dims,
                                    std::vector<LaunchTime>* times) {
  ParameterStore& store = *parameters.store();
  {
    const std::shared_lock lock(store.mutex);
    binder->resolve_states(store);
    if (runner->only_reads(binder->states())) return run_bound(inputs, outputs, dims, times);
  }
  const std::lock_guard lock(store.mutex);
  binder->resolve_states(store);
  run_bound(inputs, outputs, dims, times);
}

template <class Inputs, class Outputs>
void Executable::Impl::run_bound(const Inputs& inputs, Outputs& outputs, const DimBindings& dims,
                                 std::vector<LaunchTime>* times) {
  binder->bind(inputs, dims);
  RunArguments arguments = binder->arguments(outputs);
  arguments.times = times;
  try {
    runner->run(arguments);
    binder->finish(outputs);
  } catch (const UserError& error) {
    if (error.label() != "index_range") throw;
    explain_index_error(error);
  }
}

/// An error on one rank ends all: the others would wait for it.
template <class Run>
void Executable::Impl::ending_all(const Run& run) const {
  ranks ? lathe::ending_all(*ranks, run) : run();
}

void Executable::Impl::explain_index_error(const UserError& error) {
  std::vector<std::string> names;
  for (const ir::ValueId id : lookups.graph.arguments()) names.push_back(lookups.graph[id].name);
  ir::throw_index_error(lookups, binder->copies(names), binder->dims());
  throw error;
}

void Executable::Impl::leave_store() {
  const std::lock_guard lock(parameters.store()->mutex);
  parameters.store()->detach(program);
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

Executable::Impl& Executable::impl() const {
  if (!impl_)
    throw UserError("this Executable was moved to another", "executable_moved",
                    "use the Executable that it was moved to");
  return *impl_;
}

Parameters Executable::parameters() const { return impl().parameters; }

void Executable::use(const Parameters& parameters) {
  const std::lock_guard running(impl().running);
  {
    const std::lock_guard lock(parameters.store()->mutex);
    parameters.store()->attach(impl().program, impl().shares_states);
  }
  if (!(impl().parameters == parameters)) impl().leave_store();
  impl().parameters = parameters;
  impl().binder->forget_states();
}

Tensors Executable::run(const Tensors& inputs, const DimBindings& dims) {
  Tensors outputs;
  impl().run(inputs, outputs, dims, nullptr);
  return outputs;
}

void Executable::run(const InputRefs& inputs, const OutputRefs& outputs, const DimBindings& dims) {
  impl().run(inputs, outputs, dims, nullptr);
}

void Executable::run(const InputRefs& inputs, Tensors& outputs, const DimBindings& dims) {
  impl().run(inputs, outputs, dims, nullptr);
}

void Executable::run_into(const Tensors& inputs, Tensors& outputs, const DimBindings& dims) {
  impl().run(inputs, outputs, dims, nullptr);
}

void Executable::run_into(const Tensors& inputs, const OutputRefs& outputs, const DimBindings& dims) {
  impl().run(inputs, outputs, dims, nullptr);
}

Tensors Executable::run_traced(const Tensors& inputs, std::vector<LaunchTime>& times, const DimBindings& dims) {
  Tensors outputs;
  impl().run(inputs, outputs, dims, &times);
  return outputs;
}

DimBindings Executable::bind(const Tensors& inputs, const DimBindings& dims) const {
  const std::lock_guard running(impl().running);
  ParameterStore& store = *impl().parameters.store();
  const std::shared_lock lock(store.mutex);
  impl().binder->resolve_states(store);
  return impl().binder->bind(inputs, dims);
}

const CompileSummary& Executable::summary() const { return impl().summary; }
const std::map<std::string, shard::Placement>& Executable::placements() const { return impl().placements; }
const std::shared_ptr<Ranks>& Executable::ranks() const { return impl().ranks; }
const Program& program_of(const Executable& executable) { return executable.impl().program; }
MemoryPlan memory_plan_of(const Executable& executable, const DimBindings& dims) {
  return executable.impl().runner->memory_plan(dims);
}

}  // namespace lathe
