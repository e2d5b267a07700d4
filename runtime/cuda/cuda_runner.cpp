#include "runtime/cuda/cuda_runner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include "codegen/cuda/mapping.h"
#include "ir/support/error.h"
#include "passes/memory/memory_planner.h"
#include "passes/program/program_loops.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/kernel_variants.h"
#include "runtime/cuda/ranks/cuda_collectives.h"
#include "runtime/run/dim_table.h"

namespace lathe::cuda {

namespace {

constexpr std::size_t status_bytes = sizeof(std::uint64_t);
constexpr double most_captured = 1 << 16;  // launches in a graph; longer loops run without a graph

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
        kernels_(program, kernels, *platform_, arch, options.threads),
        planner_(program) {
    for (const ProgramBuffer& buffer : program.buffers) buffer_elements_.push_back(table_.add(buffer.elements));
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
    first_joined_ = launches_.size();
    for (const JoinedLaunches& joined : program.joined) launches_.push_back(&joined.launch);
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
    LoopSteps steps;      ///< of launches, counted from the first
    double launches = 0;  ///< with all iterations of loops
    std::unique_ptr<CapturedGraph> graph = nullptr;
  };
  /// State that depends on the values of the dims.
  struct Bound {
    DimBindings dims;
    MemoryPlan plan;
    DeviceMemory arena, status;         ///< by status_at()
    std::map<int, DeviceMemory> slots;  ///< inputs and outputs by buffer
    std::map<int, std::size_t> bytes;   ///< size of their elements in bytes
    std::vector<std::vector<std::int64_t>> launch_dims;
    std::vector<const LoadedKernel*> kernels;  ///< by launch; null: it is skipped
    std::vector<bool> empty;                   ///< by launch: it writes nothing and is skipped
    std::vector<int> joined;                   ///< by launch of the program: the kernel of phases that runs it, or -1
    std::vector<std::int64_t> sizes;           ///< values of table_
    std::vector<Segment> segments;
    std::vector<BoundLoop> loops;          ///< by loop of the program
    std::vector<std::int64_t> iterations;  ///< by loop: the current one
    std::vector<void*> where;              ///< by buffer of the program; empty: states have moved

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
  std::vector<Segment> segments(const DimBindings& dims) const;
  template <class Run>
  void run_steps(const Segment& segment, const Run& run) const;
  void find_addresses();
  void choose_kernels(Bound& bound);
  void choose_joined(Bound& bound) const;
  void separate_launches();
  void launch(std::size_t index, const Stream& stream) const;
  void launch_or_join(std::size_t index) const;
  /// Returns the status word of a launch. A kernel of phases has two: the second one is its barrier.
  std::size_t status_at(std::size_t launch) const {
    return launch + (launch > first_joined_ ? launch - first_joined_ : 0);
  }
  void launch_segments();
  void launch_timed(std::vector<LaunchTime>& times);
  LaunchTime time_without_seconds(std::size_t launch, double start) const;
  void run_launches(const RunArguments& arguments);
  void check_statuses();
  void check_phases(const JoinedLaunches& joined, std::int64_t code) const;

  const Program& program_;
  CudaRunnerOptions options_;
  std::shared_ptr<const Platform> platform_;
  Arch arch_;
  const GpuInfo& gpu_;
  Driver& driver_;
  Context context_;
  Stream stream_;
  KernelVariants kernels_;
  /// Launches of the program, then the reductions of its collectives, then those of Program::joined.
  std::vector<const Launch*> launches_;
  std::size_t first_joined_ = 0;                ///< in launches_
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
    UserError explained = error;
    std::istringstream lines(describe(plan, program));
    for (std::string line; std::getline(lines, line);) explained = explained.with_note(line);
    throw explained;
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
                                           .status = {driver_, status_bytes * status_at(launches_.size())},
                                           .slots = {},
                                           .bytes = {},
                                           .launch_dims = {},
                                           .kernels = {},
                                           .empty = {},
                                           .joined = std::vector<int>(program_.launches.size(), -1),
                                           .sizes = std::move(sizes),
                                           .segments = segments(dims),
                                           .loops = bind_loops(program_, dims),
                                           .iterations = std::vector<std::int64_t>(program_.loops.size()),
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
    made->empty.push_back(is_skipped(program_, *launch, dims));
  }
  choose_kernels(*made);
  bound_ = std::move(made);
}

/// Chooses the kernels of phases first: those of the launches that they replace may not be compiled.
void CudaRunner::choose_kernels(Bound& bound) {
  std::vector<bool> replaced = bound.empty;
  std::fill(replaced.begin(), replaced.begin() + static_cast<std::ptrdiff_t>(first_joined_), true);
  bound.kernels = kernels_.choose(launches_, bound.launch_dims, replaced, bound.loops);
  choose_joined(bound);
  for (std::size_t l = 0; l < first_joined_; ++l)
    replaced[l] = bound.empty[l] || (l < bound.joined.size() && bound.joined[l] >= 0);
  bound.kernels = kernels_.choose(launches_, bound.launch_dims, replaced, bound.loops);
}

/// Chooses the kernels of launches that kernels of phases replace, for a run that launches each on its own.
void CudaRunner::separate_launches() {
  if (std::ranges::all_of(bound_->joined, [](int joined) { return joined < 0; })) return;
  bound_->kernels = kernels_.choose(launches_, bound_->launch_dims, bound_->empty, bound_->loops);
}

/// Kernels of phases replace launches, unless one of the launches is skipped at these sizes, or the blocks of the
/// kernel cannot be resident.
void CudaRunner::choose_joined(Bound& bound) const {
  for (std::size_t j = 0; j < program_.joined.size(); ++j) {
    const auto& [first, end, launch] = program_.joined[j];
    const LoadedKernel* kernel = bound.kernels[first_joined_ + j];
    const bool is_partial =
        std::find(bound.empty.begin() + first, bound.empty.begin() + end, true) != bound.empty.begin() + end;
    if (kernel && kernel->can_be_resident() && !is_partial)
      std::fill(bound.joined.begin() + first, bound.joined.begin() + end, static_cast<int>(j));
  }
}

std::vector<CudaRunner::Segment> CudaRunner::segments(const DimBindings& dims) const {
  std::set<std::size_t> ends{program_.launches.size()};
  for (const Collective& collective : program_.collectives)
    for (const int end : {collective.start, collective.done}) ends.insert(static_cast<std::size_t>(end));
  ends.erase(0);
  std::vector<Segment> found;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    std::vector<int> starts(end - first + 1);
    std::iota(starts.begin(), starts.end(), static_cast<int>(first));
    Segment segment{first, end, LoopSteps(program_, starts)};
    for (std::size_t l = first; l < end; ++l)
      segment.launches += static_cast<double>(runs_of(program_, static_cast<int>(l)).evaluate(dims));
    found.push_back(std::move(segment));
    first = end;
  }
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
  const LoadedKernel* kernel = bound_->kernels[index];
  if (!kernel) return;
  const Launch& launch = *launches_[index];
  std::vector<Driver::Pointer> buffers;
  for (const int b : launch.buffers) buffers.push_back(reinterpret_cast<Driver::Pointer>(bound_->where[b]));
  kernel->launch(buffers, bound_->launch_dims[index], bound_->status.address() + status_bytes * status_at(index),
                 stream);
}

/// Launches a kernel of phases in place of the first launch that it replaces, and nothing in place of the others.
void CudaRunner::launch_or_join(std::size_t index) const {
  const int joined = bound_->joined[index];
  if (joined < 0) return launch(index, stream_);
  const auto number = static_cast<std::size_t>(joined);
  if (static_cast<int>(index) == program_.joined[number].first) launch(first_joined_ + number, stream_);
}

/// Calls run(launch) for each run of a launch of the segment, after it has set the addresses of the slices.
template <class Run>
void CudaRunner::run_steps(const Segment& segment, const Run& run) const {
  Bound& bound = *bound_;
  segment.steps.run(
      bound.loops, bound.iterations, [&](int unit) { run(segment.first + static_cast<std::size_t>(unit)); },
      [&](int loop, std::int64_t iteration) {
        const BoundLoop& its = bound.loops[loop];
        for (const BoundLoop::Slice& slice : its.slices)
          bound.where[slice.buffer] = static_cast<std::byte*>(bound.where[slice.of]) + its.offset(slice, iteration);
      });
}

/// Runs each segment as a graph, which is captured at the first run.
void CudaRunner::launch_segments() {
  for (Segment& segment : bound_->segments) {
    if (collectives_) collectives_->before_launch(static_cast<int>(segment.first));
    const auto first = bound_->empty.begin() + static_cast<std::ptrdiff_t>(segment.first),
               last = bound_->empty.begin() + static_cast<std::ptrdiff_t>(segment.last);
    if (std::find(first, last, false) == last || segment.launches == 0) continue;
    const auto launch_all = [&] { run_steps(segment, [&](std::size_t l) { launch_or_join(l); }); };
    if (segment.launches > most_captured) {
      launch_all();
      continue;
    }
    if (!segment.graph) segment.graph = std::make_unique<CapturedGraph>(driver_, stream_, launch_all);
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
  separate_launches();
  events.emplace_back(driver_).record(stream_);
  const auto launch_one = [&](std::size_t l) {
    if (collectives_) {
      collectives_->before_launch(static_cast<int>(l));
      events.emplace_back(driver_).record(stream_);
    }
    if (bound_->empty[l] || (options_.skipped && (*options_.skipped)[l])) return;
    launch(l, stream_);
    launched.push_back({l, events.size() - 1});
    events.emplace_back(driver_).record(stream_);
  };
  for (const Segment& segment : bound_->segments) run_steps(segment, launch_one);
  if (collectives_) collectives_->before_launch(static_cast<int>(program_.launches.size()));
  stream_.synchronize();
  std::map<std::size_t, std::size_t> time_of;  // by launch: index into `times`
  for (const auto& [l, before] : launched) {
    const double start = events[before].seconds_since(events[0]),
                 seconds = events[before + 1].seconds_since(events[before]);
    const auto [at, is_first] = time_of.try_emplace(l, times.size());
    if (is_first) times.push_back(time_without_seconds(l, start));
    LaunchTime& time = times[at->second];
    time.seconds += seconds;
    time.ranges[0].seconds += seconds;
    time.gflops += static_cast<double>(program_.launches[l].flops.evaluate(bound_->dims)) * 1e-9;
    ++time.runs;
  }
}

/// Returns the time of a launch before its first run.
LaunchTime CudaRunner::time_without_seconds(std::size_t launch, double start) const {
  const auto grid = grid_of(kernel_of(program_.launches[launch]), gpu_, bound_->launch_dims[launch]);
  const std::int64_t blocks = grid[0] * grid[1] * grid[2];
  return {static_cast<int>(launch), start, 0, 0, blocks, {{0, 0, blocks, start, 0}}, 0};
}

void CudaRunner::check_statuses() {
  std::vector<std::int64_t> codes(status_at(launches_.size()));
  if (codes.empty()) return;
  driver_.copy_to_host(codes.data(), bound_->status.address(), status_bytes * codes.size(), stream_.handle());
  stream_.synchronize();
  for (std::size_t l = 0; l < first_joined_; ++l) check_status(*launches_[l], codes[l]);
  for (std::size_t j = 0; j < program_.joined.size(); ++j)
    check_phases(program_.joined[j], codes[status_at(first_joined_ + j)]);
}

/// Finds the launch whose check failed: each phase has the codes after those of the earlier ones.
void CudaRunner::check_phases(const JoinedLaunches& joined, std::int64_t code) const {
  for (int l = joined.first; l < joined.end && code > 0; ++l) {
    const Launch& launch = program_.launches[l];
    const std::int64_t checks = std::ssize(launch.checks);
    if (code <= checks) check_status(launch, code);
    code -= checks;
  }
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
    if (written_[i]) {
      arguments.states[i]->host_is_current = false;
      arguments.states[i]->note_write();
    }
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
