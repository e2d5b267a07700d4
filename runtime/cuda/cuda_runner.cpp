#include "runtime/cuda/cuda_runner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"
#include "runtime/cuda/device.h"

namespace lathe::cuda {

namespace {

constexpr std::size_t status_bytes = sizeof(std::uint64_t);

class CudaRunner final : public ProgramRunner {
 public:
  CudaRunner(const Program& program, std::span<const CompiledKernel> kernels,
             std::shared_ptr<const Platform> platform, const Arch& arch, const std::vector<bool>* skipped)
      : program_(program),
        skipped_(skipped),
        platform_(std::move(platform)),
        arch_(arch),
        driver_(*platform_->driver),
        context_(driver_, platform_->device),
        stream_(driver_) {
    for (std::size_t k = 0; k < kernels.size(); ++k) kernels_.emplace_back(driver_, program.kernels[k], kernels[k]);
    for (auto& [buffer, value] : constant_tensors(program)) {
      const DeviceMemory& memory = constants_.emplace(buffer, DeviceMemory(driver_, value.bytes())).first->second;
      to_device(memory, value);
      stream_.synchronize();  // the value goes
    }
    for (const Launch& launch : program.launches)
      for (std::size_t i = 0; i < launch.buffers.size(); ++i)
        if (kernel_of(launch).buffers[i].access != kernel::Access::read) written_.insert(launch.buffers[i]);
  }

  ir::Tensors run(const DimBindings& dims, const ir::Tensors& inputs, ir::Tensors& states,
                  std::vector<LaunchTime>* times) override;
  void state_was_set(const std::string& name) override { states_[name].on_device = states_[name].newer = false; }
  void fetch_states(ir::Tensors& states) override;
  MemoryPlan memory_plan(const DimBindings& dims) const override { return plan_memory(program_, dims); }

 private:
  struct State {
    std::optional<DeviceMemory> memory;
    bool on_device = false;  ///< the device has the host's value, or a newer one
    bool newer = false;      ///< the device's is newer
  };
  /// Everything that depends on the dims' values.
  struct Bound {
    DimBindings dims;
    MemoryPlan plan;
    DeviceMemory arena, status;         ///< a status word for each launch
    std::map<int, DeviceMemory> slots;  ///< inputs and outputs, by buffer
    std::vector<std::vector<std::int64_t>> launch_dims;
    std::vector<bool> wide;   ///< by launch: its indices may be beyond 32 bits
    std::vector<bool> empty;  ///< by launch: it writes nothing and is left out
    std::optional<CapturedGraph> graph;
  };

  const kernel::Kernel& kernel_of(const Launch& launch) const {
    return program_.kernels[static_cast<std::size_t>(launch.kernel)];
  }
  void to_device(const DeviceMemory& memory, const HostTensor& value) {
    if (value.bytes() > 0) driver_.copy_to_device(memory.address(), value.data(), value.bytes(), stream_.handle());
  }
  void to_host(HostTensor& value, const DeviceMemory& memory) {
    if (value.bytes() > 0) driver_.copy_to_host(value.data(), memory.address(), value.bytes(), stream_.handle());
  }
  std::size_t bytes_of(int buffer, const DimBindings& dims) const {
    return static_cast<std::size_t>(buffer_bytes(program_.buffers[static_cast<std::size_t>(buffer)], dims));
  }

  void send_states(const ir::Tensors& states, const DimBindings& dims);
  void bind(const DimBindings& dims);
  void choose_indices(Bound& bound);
  std::vector<Driver::Pointer> addresses() const;
  void launch(std::size_t index, const std::vector<Driver::Pointer>& where) const;
  void launch_timed(std::vector<LaunchTime>& times);
  void check_statuses();

  const Program& program_;
  const std::vector<bool>* skipped_;
  std::shared_ptr<const Platform> platform_;
  Arch arch_;
  Driver& driver_;
  Context context_;
  Stream stream_;
  std::vector<LoadedKernel> kernels_;
  std::map<int, LoadedKernel> wide_kernels_;  ///< with wide indices, by number
  std::set<int> written_;                     ///< buffers
  std::map<int, DeviceMemory> constants_;
  std::map<std::string, State> states_;
  std::unique_ptr<Bound> bound_;
};

/// Names the largest tensors of the plan where memory does not suffice.
template <class F>
auto with_plan(const MemoryPlan& plan, const Program& program, const F& allocate) {
  try {
    return allocate();
  } catch (const UserError& error) {
    if (error.label() != "out_of_memory") throw;
    throw error.with_note("  " + describe(plan, program));
  }
}

void CudaRunner::send_states(const ir::Tensors& states, const DimBindings& dims) {
  for (const Program::Slot& slot : program_.states) {
    State& state = states_[slot.name];
    if (state.on_device) continue;
    const HostTensor& value = states.at(slot.name);
    const std::size_t bytes = std::max(value.bytes(), bytes_of(slot.buffer, dims));
    if (!state.memory || state.memory->bytes() != bytes) {
      bound_.reset();  // the graph has the old address
      state.memory.reset();
      with_plan(memory_plan(dims), program_, [&] { state.memory.emplace(driver_, bytes); });
    }
    to_device(*state.memory, value);
    state.on_device = true;
    state.newer = false;
  }
}

void CudaRunner::bind(const DimBindings& dims) {
  if (bound_ && bound_->dims == dims) return;
  bound_.reset();
  MemoryPlan plan = memory_plan(dims);
  auto made = with_plan(plan, program_, [&] {
    std::unique_ptr<Bound> bound(new Bound{.dims = dims,
                                           .plan = plan,
                                           .arena = {driver_, static_cast<std::size_t>(plan.arena_bytes)},
                                           .status = {driver_, status_bytes * program_.launches.size()},
                                           .slots = {},
                                           .launch_dims = {},
                                           .wide = {},
                                           .empty = {},
                                           .graph = std::nullopt});
    for (const auto* slots : {&program_.inputs, &program_.outputs})
      for (const Program::Slot& slot : *slots)
        bound->slots.emplace(slot.buffer, DeviceMemory(driver_, bytes_of(slot.buffer, dims)));
    return bound;
  });
  for (const Launch& launch : program_.launches) {
    auto& values = made->launch_dims.emplace_back();
    for (const Dim& dim : launch.dims) values.push_back(dim.evaluate(dims));
    made->empty.push_back(writes_nothing(program_, launch, dims));
  }
  choose_indices(*made);
  bound_ = std::move(made);
}

/// Finds the launches whose indices may be beyond 32 bits, and compiles what they need.
void CudaRunner::choose_indices(Bound& bound) {
  std::map<std::pair<int, std::vector<std::int64_t>>, bool> suffices;
  std::set<int> missing;
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    if (bound.empty[l]) {
      bound.wide.push_back(false);
      continue;
    }
    const int number = program_.launches[l].kernel;
    const auto [at, is_new] = suffices.try_emplace({number, bound.launch_dims[l]}, true);
    if (is_new) at->second = narrow_suffices(kernel_of(program_.launches[l]), bound.launch_dims[l]);
    bound.wide.push_back(!at->second);
    if (!at->second && !wide_kernels_.contains(number)) missing.insert(number);
  }
  if (missing.empty()) return;
  std::vector<kernel::Kernel> kernels;
  for (const int number : missing) kernels.push_back(program_.kernels[static_cast<std::size_t>(number)]);
  const auto compiled = platform_->compile(kernels, arch_, nullptr, Indices::wide);
  std::size_t i = 0;
  for (const int number : missing) {
    wide_kernels_.emplace(number, LoadedKernel(driver_, kernels[i], compiled[i]));
    ++i;
  }
}

/// Where every buffer of the program lies.
std::vector<Driver::Pointer> CudaRunner::addresses() const {
  std::vector<Driver::Pointer> where(program_.buffers.size(), 0);
  const auto at = [&](int buffer) -> Driver::Pointer& { return where[static_cast<std::size_t>(buffer)]; };
  for (const MemoryPlan::Block& block : bound_->plan.blocks)
    at(block.buffer) = bound_->arena.address() + static_cast<std::uint64_t>(block.offset);
  for (const auto* slots : {&program_.inputs, &program_.outputs})
    for (const Program::Slot& slot : *slots) at(slot.buffer) = bound_->slots.at(slot.buffer).address();
  for (const Program::Slot& slot : program_.states) at(slot.buffer) = states_.at(slot.name).memory->address();
  for (const auto& [buffer, memory] : constants_) at(buffer) = memory.address();
  return where;
}

void CudaRunner::launch(std::size_t index, const std::vector<Driver::Pointer>& where) const {
  const Launch& launch = program_.launches[index];
  std::vector<Driver::Pointer> buffers;
  for (const int b : launch.buffers) buffers.push_back(where[static_cast<std::size_t>(b)]);
  const LoadedKernel& kernel =
      bound_->wide[index] ? wide_kernels_.at(launch.kernel) : kernels_[static_cast<std::size_t>(launch.kernel)];
  kernel.launch(buffers, bound_->launch_dims[index], bound_->status.address() + status_bytes * index, stream_);
}

/// Launch by launch, with an event between each two.
void CudaRunner::launch_timed(std::vector<LaunchTime>& times) {
  const auto where = addresses();
  std::vector<std::size_t> launched;
  std::vector<Event> events;
  events.emplace_back(driver_).record(stream_);
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    if (bound_->empty[l] || (skipped_ && (*skipped_)[l])) continue;
    launch(l, where);
    launched.push_back(l);
    events.emplace_back(driver_).record(stream_);
  }
  stream_.synchronize();
  for (std::size_t i = 0; i < launched.size(); ++i) {
    const std::size_t l = launched[i];
    const Launch& launch = program_.launches[l];
    const double start = events[i].seconds_since(events[0]), seconds = events[i + 1].seconds_since(events[i]);
    const auto grid = grid_of(kernel_of(launch), bound_->launch_dims[l]);
    const std::int64_t blocks = grid[0] * grid[1] * grid[2];
    times.push_back({static_cast<int>(l),
                     start,
                     seconds,
                     static_cast<double>(launch.flops.evaluate(bound_->dims)) * 1e-9,
                     blocks,
                     {{0, 0, blocks, start, seconds}}});
  }
}

void CudaRunner::check_statuses() {
  std::vector<std::int64_t> codes(program_.launches.size());
  if (codes.empty()) return;
  driver_.copy_to_host(codes.data(), bound_->status.address(), status_bytes * codes.size(), stream_.handle());
  stream_.synchronize();
  for (std::size_t l = 0; l < codes.size(); ++l) check_status(program_.launches[l], codes[l]);
}

ir::Tensors CudaRunner::run(const DimBindings& dims, const ir::Tensors& inputs, ir::Tensors& states,
                            std::vector<LaunchTime>* times) {
  context_.make_current();
  send_states(states, dims);
  bind(dims);
  for (const Program::Slot& slot : program_.inputs) to_device(bound_->slots.at(slot.buffer), inputs.at(slot.name));
  if (bound_->status.bytes() > 0) driver_.fill(bound_->status.address(), 0, bound_->status.bytes(), stream_.handle());
  for (const Program::Slot& slot : program_.states)
    if (written_.contains(slot.buffer)) states_.at(slot.name).newer = true;
  if (times) {
    launch_timed(*times);
  } else if (std::find(bound_->empty.begin(), bound_->empty.end(), false) != bound_->empty.end()) {
    if (!bound_->graph) {
      const auto where = addresses();
      bound_->graph.emplace(driver_, stream_, [&] {
        for (std::size_t l = 0; l < program_.launches.size(); ++l)
          if (!bound_->empty[l]) launch(l, where);
      });
    }
    bound_->graph->launch(stream_);
  }
  ir::Tensors outputs;
  for (const Program::Slot& slot : program_.outputs)
    to_host(outputs[slot.name] = HostTensor(slot.dtype, slot.shape.evaluate(dims)), bound_->slots.at(slot.buffer));
  stream_.synchronize();
  check_statuses();
  return outputs;
}

void CudaRunner::fetch_states(ir::Tensors& states) {
  if (std::none_of(states_.begin(), states_.end(), [](const auto& s) { return s.second.newer; })) return;
  context_.make_current();
  for (auto& [name, state] : states_)
    if (state.newer) to_host(states.at(name), *state.memory);
  stream_.synchronize();
  for (auto& [name, state] : states_) state.newer = false;
}

}  // namespace

std::unique_ptr<ProgramRunner> make_cuda_runner(const Program& program, std::span<const CompiledKernel> kernels,
                                                std::shared_ptr<const Platform> platform, const Arch& arch,
                                                const std::vector<bool>* skipped) {
  return std::make_unique<CudaRunner>(program, kernels, std::move(platform), arch, skipped);
}

}  // namespace lathe::cuda
