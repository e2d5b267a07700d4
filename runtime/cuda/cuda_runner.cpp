#include "runtime/cuda/cuda_runner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"
#include "passes/memory/memory_planner.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/ranks/cuda_collectives.h"
#include "runtime/run/dim_table.h"

namespace lathe::cuda {

namespace {

constexpr std::size_t status_bytes = sizeof(std::uint64_t);

/// A stored tensor in GPU memory.
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

  dlpack::Device device() const override { return {dlpack::Device::cuda, platform_->device}; }

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
        gpu_(gpu_info(arch.name())),
        driver_(*platform_->driver),
        context_(driver_, platform_->device),
        stream_(driver_),
        planner_(program) {
    for (const ProgramBuffer& buffer : program.buffers) buffer_elements_.push_back(table_.add(buffer.elements));
    for (std::size_t k = 0; k < kernels.size(); ++k)
      kernels_.emplace_back(driver_, program.kernels[k], gpu_, kernels[k]);
    for (auto& [buffer, value] : constant_tensors(program)) {
      const DeviceMemory& memory = constants_.emplace(buffer, DeviceMemory(driver_, value.bytes())).first->second;
      to_device(memory, value.data(), value.bytes());
      stream_.synchronize();  // `value` is destroyed when this returns
    }
    for (const Launch& launch : program.launches) launches_.push_back(&launch);
    for (const Collective& collective : program.collectives)
      for (const Collective::Part& part : collective.parts)
        if (part.fold) {
          folds_.emplace(&*part.fold, launches_.size());
          launches_.push_back(&*part.fold);
        }
    if (platform_->groups && !program.collectives.empty())
      collectives_.emplace(program, table_, *platform_->groups, driver_, stream_,
                           [this](const Launch& fold, const Stream& stream) { launch(folds_.at(&fold), stream); });
    const std::vector<bool> written = written_buffers(program);
    for (const Program::Slot& slot : program.states) written_.push_back(written[slot.buffer]);
  }

  void run(const RunArguments& arguments) override;
  // Runs may move values to the device, so they write the states.
  bool only_reads(std::span<StoredTensor* const>) const override { return false; }
  MemoryPlan memory_plan(const DimBindings& dims) const override { return plan_memory(program_, dims); }
  std::int64_t plan(const DimBindings& dims) override {
    std::vector<std::int64_t> sizes;
    table_.evaluate(dims, sizes);
    return planned(sizes).arena_bytes;
  }

 private:
  /// Launches [first, last), during which no collective starts or must be complete. They are captured as one graph.
  struct Segment {
    std::size_t first, last;
    std::unique_ptr<CapturedGraph> graph = nullptr;
  };
  /// State that depends on the values of the dims.
  struct Bound {
    DimBindings dims;
    MemoryPlan plan;
    DeviceMemory arena, status;         ///< one status word for each of launches_
    std::map<int, DeviceMemory> slots;  ///< inputs and outputs by buffer
    std::map<int, std::size_t> bytes;   ///< size of their elements in bytes
    std::vector<std::vector<std::int64_t>> launch_dims;
    std::vector<bool> int64;          ///< by launch: indices may exceed 32 bits
    std::vector<bool> empty;          ///< by launch: it writes nothing and is skipped
    std::vector<std::int64_t> sizes;  ///< values of table_
    std::vector<Segment> segments;
    std::vector<void*> where;  ///< by buffer of the program; empty: states have moved

    void forget_graphs() {
      where.clear();
      for (Segment& segment : segments) segment.graph.reset();
    }
  };

  const kernel::Kernel& kernel_of(const Launch& launch) const { return program_.kernels[launch.kernel]; }
  void to_device(const DeviceMemory& memory, const std::byte* data, std::size_t bytes) {
    if (bytes > 0) driver_.copy_to_device(memory.address(), data, bytes, stream_.handle());
  }
  void to_host(std::byte* data, std::size_t bytes, const DeviceMemory& memory) {
    if (bytes > 0) driver_.copy_to_host(data, memory.address(), bytes, stream_.handle());
  }
  std::size_t bytes_of(int buffer, const DimBindings& dims) const {
    return static_cast<std::size_t>(buffer_bytes(program_.buffers[buffer], dims));
  }

  GpuTensor* on_this_gpu(const StoredTensor& state) const;
  void send_states(std::span<StoredTensor* const> states, const DimBindings& dims);
  const MemoryPlan& planned(const std::vector<std::int64_t>& sizes);
  void bind(const DimBindings& dims);
  std::vector<Segment> segments() const;
  void choose_indices(Bound& bound);
  void find_addresses();
  void launch(std::size_t index, const Stream& stream) const;
  void launch_segments();
  void launch_timed(std::vector<LaunchTime>& times);
  void run_launches(const RunArguments& arguments);
  void check_statuses();

  const Program& program_;
  CudaRunnerOptions options_;
  std::shared_ptr<const Platform> platform_;
  Arch arch_;
  const GpuInfo& gpu_;
  Driver& driver_;
  Context context_;
  Stream stream_;
  std::vector<LoadedKernel> kernels_;
  std::map<int, LoadedKernel> int64_kernels_;   ///< with 64-bit indices, by kernel number
  std::vector<const Launch*> launches_;         ///< launches of the program, then the reductions of its collectives
  std::map<const Launch*, std::size_t> folds_;  ///< index of each reduction in launches_
  std::vector<bool> written_;                   ///< by state
  std::map<int, DeviceMemory> constants_;
  std::vector<Driver::Pointer> states_;  ///< by slot: address of each state in this run
  std::unique_ptr<Bound> bound_;
  DimTable table_;                            ///< sizes that buffers and collectives need
  std::vector<std::size_t> buffer_elements_;  ///< by buffer: position of its size
  MemoryPlanner planner_;
  std::optional<CudaCollectives> collectives_;  ///< with other ranks
};

/// Adds the plan's largest tensors to the error if memory does not suffice.
template <class F>
auto with_plan(const MemoryPlan& plan, const Program& program, const F& allocate) {
  try {
    return allocate();
  } catch (const UserError& error) {
    if (error.label() != "out_of_memory") throw;
    UserError told = error;
    std::istringstream lines(describe(plan, program));
    for (std::string line; std::getline(lines, line);) told = told.with_note(line);
    throw told;
  }
}

GpuTensor* CudaRunner::on_this_gpu(const StoredTensor& state) const {
  auto* tensor = dynamic_cast<GpuTensor*>(state.device.get());
  return tensor && tensor->platform() == platform_.get() ? tensor : nullptr;
}

/// Copies the states to this GPU unless they are current there. The graph of all launches contains their addresses.
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
  if (bound_) bound_->forget_graphs();  // the graphs contain the old addresses
}

/// Returns the plan for sizes by position in the table. It is valid until the next call.
const MemoryPlan& CudaRunner::planned(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> elements;
  for (const std::size_t size : buffer_elements_) elements.push_back(sizes[size]);
  return planner_.plan(elements);
}

void CudaRunner::bind(const DimBindings& dims) {
  if (bound_ && bound_->dims == dims) return;
  bound_.reset();
  std::vector<std::int64_t> sizes;
  table_.evaluate(dims, sizes);
  const MemoryPlan& plan = planned(sizes);
  auto made = with_plan(plan, program_, [&] {
    std::unique_ptr<Bound> bound(new Bound{.dims = dims,
                                           .plan = plan,
                                           .arena = {driver_, static_cast<std::size_t>(plan.arena_bytes)},
                                           .status = {driver_, status_bytes * launches_.size()},
                                           .slots = {},
                                           .bytes = {},
                                           .launch_dims = {},
                                           .int64 = {},
                                           .empty = {},
                                           .sizes = std::move(sizes),
                                           .segments = segments(),
                                           .where = {}});
    for (const auto* slots : {&program_.inputs, &program_.outputs})
      for (const Program::Slot& slot : *slots) {
        bound->slots.emplace(slot.buffer, DeviceMemory(driver_, bytes_of(slot.buffer, dims)));
        bound->bytes.emplace(slot.buffer, static_cast<std::size_t>(count_elements(slot.shape.evaluate(dims))) *
                                              size_in_bytes(slot.dtype));
      }
    return bound;
  });
  for (const Launch* launch : launches_) {
    auto& values = made->launch_dims.emplace_back();
    for (const Dim& dim : launch->dims) values.push_back(dim.evaluate(dims));
    made->empty.push_back(writes_nothing(program_, *launch, dims));
  }
  choose_indices(*made);
  bound_ = std::move(made);
}

/// Finds the launches whose indices may exceed 32 bits, and compiles their kernels with 64-bit indices.
void CudaRunner::choose_indices(Bound& bound) {
  std::map<std::pair<int, std::vector<std::int64_t>>, bool> suffices;
  std::set<int> missing;
  for (std::size_t l = 0; l < launches_.size(); ++l) {
    if (bound.empty[l]) {
      bound.int64.push_back(false);
      continue;
    }
    const int number = launches_[l]->kernel;
    const auto [at, is_new] = suffices.try_emplace({number, bound.launch_dims[l]}, true);
    if (is_new) at->second = int32_suffices(kernel_of(*launches_[l]), gpu_, bound.launch_dims[l]);
    bound.int64.push_back(!at->second);
    if (!at->second && !int64_kernels_.contains(number)) missing.insert(number);
  }
  if (missing.empty()) return;
  std::vector<kernel::Kernel> kernels;
  for (const int number : missing) kernels.push_back(program_.kernels[number]);
  const auto compiled = platform_->compile(kernels, arch_, nullptr, Indices::int64, options_.threads);
  std::size_t i = 0;
  for (const int number : missing) {
    int64_kernels_.emplace(number, LoadedKernel(driver_, kernels[i], gpu_, compiled[i]));
    ++i;
  }
}

std::vector<CudaRunner::Segment> CudaRunner::segments() const {
  std::set<std::size_t> ends{program_.launches.size()};
  for (const Collective& collective : program_.collectives)
    for (const int end : {collective.start, collective.done}) ends.insert(static_cast<std::size_t>(end));
  ends.erase(0);
  std::vector<Segment> found;
  std::size_t first = 0;
  for (const std::size_t end : ends) found.push_back({std::exchange(first, end), end});
  return found;
}

/// Sets the addresses of all buffers of the program.
void CudaRunner::find_addresses() {
  std::vector<void*> where(program_.buffers.size(), nullptr);
  const auto put = [&](int buffer, Driver::Pointer address) {
    where[buffer] = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  };
  for (const MemoryPlan::Block& block : bound_->plan.blocks)
    put(block.buffer, bound_->arena.address() + static_cast<std::uint64_t>(block.offset));
  for (const auto* slots : {&program_.inputs, &program_.outputs})
    for (const Program::Slot& slot : *slots) put(slot.buffer, bound_->slots.at(slot.buffer).address());
  for (std::size_t i = 0; i < program_.states.size(); ++i) put(program_.states[i].buffer, states_[i]);
  for (const auto& [buffer, memory] : constants_) put(buffer, memory.address());
  bound_->where = std::move(where);
}

void CudaRunner::launch(std::size_t index, const Stream& stream) const {
  if (bound_->empty[index]) return;
  const Launch& launch = *launches_[index];
  std::vector<Driver::Pointer> buffers;
  for (const int b : launch.buffers) buffers.push_back(reinterpret_cast<Driver::Pointer>(bound_->where[b]));
  const LoadedKernel& kernel = bound_->int64[index] ? int64_kernels_.at(launch.kernel) : kernels_[launch.kernel];
  kernel.launch(buffers, bound_->launch_dims[index], bound_->status.address() + status_bytes * index, stream);
}

/// Runs each segment as a graph, which is captured at the first run.
void CudaRunner::launch_segments() {
  for (Segment& segment : bound_->segments) {
    if (collectives_) collectives_->before_launch(static_cast<int>(segment.first));
    const auto first = bound_->empty.begin() + static_cast<std::ptrdiff_t>(segment.first),
               last = bound_->empty.begin() + static_cast<std::ptrdiff_t>(segment.last);
    if (std::find(first, last, false) == last) continue;
    if (!segment.graph)
      segment.graph = std::make_unique<CapturedGraph>(driver_, stream_, [&] {
        for (std::size_t l = segment.first; l < segment.last; ++l) launch(l, stream_);
      });
    segment.graph->launch(stream_);
  }
}

/// Runs the launches individually, with an event between any two, and another one after a wait for collectives.
void CudaRunner::launch_timed(std::vector<LaunchTime>& times) {
  struct Timed {
    std::size_t launch, before;  ///< index of the event before the launch; the next event follows the launch
  };
  std::vector<Timed> launched;
  std::vector<Event> events;
  events.emplace_back(driver_).record(stream_);
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    if (collectives_) {
      collectives_->before_launch(static_cast<int>(l));
      events.emplace_back(driver_).record(stream_);
    }
    if (bound_->empty[l] || (options_.skipped && (*options_.skipped)[l])) continue;
    launch(l, stream_);
    launched.push_back({l, events.size() - 1});
    events.emplace_back(driver_).record(stream_);
  }
  if (collectives_) collectives_->before_launch(static_cast<int>(program_.launches.size()));
  stream_.synchronize();
  for (const auto& [l, before] : launched) {
    const Launch& launch = program_.launches[l];
    const double start = events[before].seconds_since(events[0]),
                 seconds = events[before + 1].seconds_since(events[before]);
    const auto grid = grid_of(kernel_of(launch), gpu_, bound_->launch_dims[l]);
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
  std::vector<std::int64_t> codes(launches_.size());
  if (codes.empty()) return;
  driver_.copy_to_host(codes.data(), bound_->status.address(), status_bytes * codes.size(), stream_.handle());
  stream_.synchronize();
  for (std::size_t l = 0; l < codes.size(); ++l) check_status(*launches_[l], codes[l]);
}

void CudaRunner::run(const RunArguments& arguments) {
  context_.make_current();
  send_states(arguments.states, arguments.dims);
  bind(arguments.dims);
  if (bound_->where.empty()) find_addresses();
  if (!collectives_) {
    run_launches(arguments);
  } else {
    collectives_->begin(bound_->sizes, bound_->where);
    try {
      run_launches(arguments);
      collectives_->end();
    } catch (...) {
      collectives_->fail();
    }
  }
  check_statuses();
}

void CudaRunner::run_launches(const RunArguments& arguments) {
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const int buffer = program_.inputs[i].buffer;
    to_device(bound_->slots.at(buffer), arguments.inputs[i], bound_->bytes.at(buffer));
  }
  if (bound_->status.bytes() > 0) driver_.fill(bound_->status.address(), 0, bound_->status.bytes(), stream_.handle());
  for (std::size_t i = 0; i < program_.states.size(); ++i)
    if (written_[i]) arguments.states[i]->host_is_current = false;
  if (arguments.times) {
    launch_timed(*arguments.times);
  } else {
    launch_segments();
    if (collectives_) collectives_->before_launch(static_cast<int>(program_.launches.size()));
  }
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    const int buffer = program_.outputs[i].buffer;
    to_host(arguments.outputs[i], bound_->bytes.at(buffer), bound_->slots.at(buffer));
  }
  stream_.synchronize();
}

}  // namespace

std::unique_ptr<ProgramRunner> make_cuda_runner(const Program& program, std::span<const CompiledKernel> kernels,
                                                std::shared_ptr<const Platform> platform, const Arch& arch,
                                                const CudaRunnerOptions& options) {
  return std::make_unique<CudaRunner>(program, kernels, std::move(platform), arch, options);
}

}  // namespace lathe::cuda
