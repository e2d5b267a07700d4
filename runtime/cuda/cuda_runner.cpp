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

/// A stored tensor in the memory of a GPU.
class GpuTensor final : public DeviceTensor {
 public:
  GpuTensor(std::shared_ptr<const Platform> platform, std::size_t bytes)
      : platform_(std::move(platform)),
        context_(*platform_->driver, platform_->device),
        memory_(*platform_->driver, bytes) {}

  void copy_to(HostTensor& host) override {
    if (host.bytes() == 0) return;
    context_.make_current();
    const Stream stream(*platform_->driver);
    platform_->driver->copy_to_host(host.data(), memory_.address(), host.bytes(), stream.handle());
    platform_->driver->synchronize(stream.handle());
  }

  const Platform* platform() const { return platform_.get(); }
  const DeviceMemory& memory() const { return memory_; }

 private:
  std::shared_ptr<const Platform> platform_;
  Context context_;
  DeviceMemory memory_;
};

class CudaRunner final : public ProgramRunner {
 public:
  CudaRunner(const Program& program, std::span<const CompiledKernel> kernels,
             std::shared_ptr<const Platform> platform, const Arch& arch, const CudaRunnerOptions& options)
      : program_(program),
        options_(options),
        platform_(std::move(platform)),
        arch_(arch),
        driver_(*platform_->driver),
        context_(driver_, platform_->device),
        stream_(driver_) {
    for (std::size_t k = 0; k < kernels.size(); ++k) kernels_.emplace_back(driver_, program.kernels[k], kernels[k]);
    for (auto& [buffer, value] : constant_tensors(program)) {
      const DeviceMemory& memory = constants_.emplace(buffer, DeviceMemory(driver_, value.bytes())).first->second;
      to_device(memory, value.data(), value.bytes());
      stream_.synchronize();  // the value goes
    }
    const std::vector<bool> written = written_buffers(program);
    for (const Program::Slot& slot : program.states)
      written_.push_back(written[static_cast<std::size_t>(slot.buffer)]);
  }

  void run(const RunArguments& arguments) override;
  // Values move to the device in runs.
  bool only_reads(std::span<StoredTensor* const>) const override { return false; }
  MemoryPlan memory_plan(const DimBindings& dims) const override { return plan_memory(program_, dims); }

 private:
  /// Everything that depends on the dims' values.
  struct Bound {
    DimBindings dims;
    MemoryPlan plan;
    DeviceMemory arena, status;         ///< a status word for each launch
    std::map<int, DeviceMemory> slots;  ///< inputs and outputs, by buffer
    std::map<int, std::size_t> bytes;   ///< of their elements
    std::vector<std::vector<std::int64_t>> launch_dims;
    std::vector<bool> wide;   ///< by launch: its indices may be beyond 32 bits
    std::vector<bool> empty;  ///< by launch: it writes nothing and is left out
    std::optional<CapturedGraph> graph;
  };

  const kernel::Kernel& kernel_of(const Launch& launch) const {
    return program_.kernels[static_cast<std::size_t>(launch.kernel)];
  }
  void to_device(const DeviceMemory& memory, const std::byte* data, std::size_t bytes) {
    if (bytes > 0) driver_.copy_to_device(memory.address(), data, bytes, stream_.handle());
  }
  void to_host(std::byte* data, std::size_t bytes, const DeviceMemory& memory) {
    if (bytes > 0) driver_.copy_to_host(data, memory.address(), bytes, stream_.handle());
  }
  std::size_t bytes_of(int buffer, const DimBindings& dims) const {
    return static_cast<std::size_t>(buffer_bytes(program_.buffers[static_cast<std::size_t>(buffer)], dims));
  }

  GpuTensor* on_this_gpu(const StoredTensor& state) const;
  void send_states(std::span<StoredTensor* const> states, const DimBindings& dims);
  void bind(const DimBindings& dims);
  void choose_indices(Bound& bound);
  std::vector<Driver::Pointer> addresses() const;
  void launch(std::size_t index, const std::vector<Driver::Pointer>& where) const;
  void launch_timed(std::vector<LaunchTime>& times);
  void check_statuses();

  const Program& program_;
  CudaRunnerOptions options_;
  std::shared_ptr<const Platform> platform_;
  Arch arch_;
  Driver& driver_;
  Context context_;
  Stream stream_;
  std::vector<LoadedKernel> kernels_;
  std::map<int, LoadedKernel> int64_kernels_;  ///< with 64-bit indices, by number
  std::vector<bool> written_;                  ///< by state
  std::map<int, DeviceMemory> constants_;
  std::vector<Driver::Pointer> states_;  ///< by slot: where the states of this run lie
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

GpuTensor* CudaRunner::on_this_gpu(const StoredTensor& state) const {
  auto* tensor = dynamic_cast<GpuTensor*>(state.device.get());
  return tensor && tensor->platform() == platform_.get() ? tensor : nullptr;
}

/// Brings the states to this GPU, where the graph of all launches knows them by their addresses.
void CudaRunner::send_states(std::span<StoredTensor* const> states, const DimBindings& dims) {
  std::vector<Driver::Pointer> addresses;
  for (std::size_t i = 0; i < states.size(); ++i) {
    StoredTensor& state = *states[i];
    const HostTensor& value = state.host;
    const std::size_t bytes = std::max(value.bytes(), bytes_of(program_.states[i].buffer, dims));
    GpuTensor* tensor = on_this_gpu(state);
    if (!tensor || tensor->memory().bytes() != bytes) {
      state.on_host();
      state.device.reset();
      state.device_is_current = false;
      with_plan(memory_plan(dims), program_, [&] {
        auto made = std::make_shared<GpuTensor>(platform_, bytes);
        tensor = made.get();
        state.device = std::move(made);
      });
    }
    if (!state.device_is_current) to_device(tensor->memory(), value.data(), value.bytes());
    state.device_is_current = true;
    addresses.push_back(tensor->memory().address());
  }
  if (addresses == states_) return;
  states_ = std::move(addresses);
  if (bound_) bound_->graph.reset();  // it has the old ones
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
                                           .bytes = {},
                                           .launch_dims = {},
                                           .wide = {},
                                           .empty = {},
                                           .graph = std::nullopt});
    for (const auto* slots : {&program_.inputs, &program_.outputs})
      for (const Program::Slot& slot : *slots) {
        bound->slots.emplace(slot.buffer, DeviceMemory(driver_, bytes_of(slot.buffer, dims)));
        bound->bytes.emplace(slot.buffer, static_cast<std::size_t>(count_elements(slot.shape.evaluate(dims))) *
                                              size_in_bytes(slot.dtype));
      }
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
    if (is_new) at->second = int32_suffices(kernel_of(program_.launches[l]), bound.launch_dims[l]);
    bound.wide.push_back(!at->second);
    if (!at->second && !int64_kernels_.contains(number)) missing.insert(number);
  }
  if (missing.empty()) return;
  std::vector<kernel::Kernel> kernels;
  for (const int number : missing) kernels.push_back(program_.kernels[static_cast<std::size_t>(number)]);
  const auto compiled = platform_->compile(kernels, arch_, nullptr, Indices::int64, options_.threads);
  std::size_t i = 0;
  for (const int number : missing) {
    int64_kernels_.emplace(number, LoadedKernel(driver_, kernels[i], compiled[i]));
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
  for (std::size_t i = 0; i < program_.states.size(); ++i) at(program_.states[i].buffer) = states_[i];
  for (const auto& [buffer, memory] : constants_) at(buffer) = memory.address();
  return where;
}

void CudaRunner::launch(std::size_t index, const std::vector<Driver::Pointer>& where) const {
  const Launch& launch = program_.launches[index];
  std::vector<Driver::Pointer> buffers;
  for (const int b : launch.buffers) buffers.push_back(where[static_cast<std::size_t>(b)]);
  const LoadedKernel& kernel =
      bound_->wide[index] ? int64_kernels_.at(launch.kernel) : kernels_[static_cast<std::size_t>(launch.kernel)];
  kernel.launch(buffers, bound_->launch_dims[index], bound_->status.address() + status_bytes * index, stream_);
}

/// Launch by launch, with an event between each two.
void CudaRunner::launch_timed(std::vector<LaunchTime>& times) {
  const auto where = addresses();
  std::vector<std::size_t> launched;
  std::vector<Event> events;
  events.emplace_back(driver_).record(stream_);
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    if (bound_->empty[l] || (options_.skipped && (*options_.skipped)[l])) continue;
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

void CudaRunner::run(const RunArguments& arguments) {
  context_.make_current();
  send_states(arguments.states, arguments.dims);
  bind(arguments.dims);
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const int buffer = program_.inputs[i].buffer;
    to_device(bound_->slots.at(buffer), arguments.inputs[i], bound_->bytes.at(buffer));
  }
  if (bound_->status.bytes() > 0) driver_.fill(bound_->status.address(), 0, bound_->status.bytes(), stream_.handle());
  for (std::size_t i = 0; i < program_.states.size(); ++i)
    if (written_[i]) arguments.states[i]->host_is_current = false;
  if (arguments.times) {
    launch_timed(*arguments.times);
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
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    const int buffer = program_.outputs[i].buffer;
    to_host(arguments.outputs[i], bound_->bytes.at(buffer), bound_->slots.at(buffer));
  }
  stream_.synchronize();
  check_statuses();
}

}  // namespace

std::unique_ptr<ProgramRunner> make_cuda_runner(const Program& program, std::span<const CompiledKernel> kernels,
                                                std::shared_ptr<const Platform> platform, const Arch& arch,
                                                const CudaRunnerOptions& options) {
  return std::make_unique<CudaRunner>(program, kernels, std::move(platform), arch, options);
}

}  // namespace lathe::cuda
