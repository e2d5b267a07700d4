#include "runtime/cpu/cpu_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "ir/hardware/memory_units.h"
#include "passes/memory/memory_planner.h"
#include "passes/program/program_loops.h"
#include "runtime/cpu/cpu_collectives.h"
#include "runtime/cpu/kept_copies.h"
#include "runtime/cpu/launch_groups.h"
#include "runtime/host/arena.h"
#include "runtime/host/arena_guard.h"
#include "runtime/host/seconds.h"
#include "runtime/run/dim_table.h"
#include "runtime/threads/shared_threads.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
/// Returns the number of iterations per chunk of a parallel loop; an iteration has `work` scalar operations. A chunk
/// has enough work to amortize scheduling. The number of chunks is limited to what load balancing needs, because
/// threads access memory sequentially and prefetch only within a chunk. Light iterations take equal time and need few
/// chunks; heavy ones get more. Chunks have equal sizes, and their number is at most 2 or rounded up to a multiple of
/// 4, so that threads share them evenly.
std::int64_t grain_of(const TaskSizes& sizes, std::int64_t extent, std::int64_t work) {
  const std::int64_t most_chunks = work < sizes.heavy_work ? sizes.light_chunks : sizes.heavy_chunks;
  const std::int64_t least = sizes.least_chunk_work / std::max<std::int64_t>(1, work);
  const std::int64_t grain = std::max({std::int64_t{1}, least, extent / most_chunks});
  const std::int64_t fewest = (extent + grain - 1) / grain, chunks = fewest <= 2 ? fewest : (fewest + 3) / 4 * 4;
  return chunks > 0 ? (extent + chunks - 1) / chunks : grain;
}

/// Records the ranges that each thread ran, with their times. Thread-safe.
class RangeRecorder {
 public:
  explicit RangeRecorder(Clock::time_point start) : start_(start) {}

  double now() const { return seconds_since(start_); }

  void add(int thread, std::int64_t begin, std::int64_t end, double started) {
    const double seconds = now() - started;
    const std::lock_guard lock(mutex_);
    ranges_.push_back({thread, begin, end, started, seconds});
  }

  /// Returns the ranges recorded since the last call, by begin.
  std::vector<TaskRange> take() {
    std::vector<TaskRange> taken = std::exchange(ranges_, {});
    std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return taken;
  }

 private:
  Clock::time_point start_;
  std::mutex mutex_;
  std::vector<TaskRange> ranges_;
};

/// Adds the seconds of `more` to the equal ranges of another run of the launch.
void add_ranges(std::vector<TaskRange>& ranges, const std::vector<TaskRange>& more) {
  for (const TaskRange& range : more) {
    const auto is_equal = [&](const TaskRange& other) {
      return other.thread == range.thread && other.begin == range.begin && other.end == range.end;
    };
    const auto same = std::ranges::find_if(ranges, is_equal);
    if (same == ranges.end())
      ranges.insert(std::ranges::upper_bound(ranges, range.begin, {}, &TaskRange::begin), range);
    else
      same->seconds += range.seconds;
  }
}

class CpuRunner final : public ProgramRunner {
 public:
  CpuRunner(const Program& program, codegen::CompiledKernels kernels, const CpuRunnerOptions& options);

  void run(const RunArguments& arguments) override;
  bool only_reads(std::span<StoredTensor* const> states) const override;
  MemoryPlan memory_plan(const DimBindings& dims) const override {
    return plan_memory(program_, dims, threads_.size());
  }
  std::int64_t plan(const DimBindings& dims) override;

 private:
  /// The sizes that a launch depends on, as positions in the table of sizes.
  struct LaunchSizes {
    std::vector<std::size_t> dims;
    std::size_t work = 0, flops = 0, bytes = 0, condition = 0;
  };
  /// The groups of the launches that run.
  struct Grouping {
    std::vector<bool> skips = {};  ///< the others
    std::vector<LaunchGroup> groups = {};
    LoopSteps steps = {};  ///< of groups
  };
  /// The memory plan of the temporaries. It is valid for every binding of the dims whose temporaries fit it.
  struct Planned {
    DimBindings dims;
    MemoryPlan plan;
    std::vector<std::int64_t> elements;  ///< planned elements, by buffer
    std::vector<Grouping> groupings;     ///< the current one is first

    const Grouping& grouping() const { return groupings.front(); }
  };
  /// A launch under one binding of the dims.
  struct Call {
    std::vector<std::vector<void*>> buffers;  ///< by thread; a launch without scratch has one list for all threads
    std::vector<std::int64_t> dims;
    std::int64_t extent = 0, grain = 1;
    std::int64_t work = 0;  ///< scalar operations
    double gflops = 0;

    std::int64_t chunks() const { return (extent + grain - 1) / grain; }
  };

  /// What a run is given besides its memory.
  struct Run {
    const ArenaGuard& guard;
    std::vector<LaunchTime>* times;
    RangeRecorder recorder;
    std::vector<int> time_of;  ///< by launch: index into `times`, or -1
  };

  void prepare(const DimBindings& dims);
  bool has_room(const Planned& planned) const;
  void make_plan(const DimBindings& dims);
  void add_grouping(Planned& planned, std::vector<bool> skips) const;
  void group_launches();
  void make_room();
  bool is_skipped(std::size_t number) const;
  void point_buffers(const RunArguments& arguments);
  void run_range(std::size_t index, std::int64_t begin, std::int64_t end, int thread,
                 std::atomic<std::int64_t>& failure) const;
  void launch(std::size_t index, RangeRecorder* recorder);
  bool runs_together(const LaunchGroup& group) const;
  void launch_together(const LaunchGroup& group);
  void launch_timed(std::size_t index, Run& run);
  void run_group(std::size_t number, Run& run);
  void point_slices(int loop, std::int64_t iteration);
  void pack_parameters(Run& run, std::span<StoredTensor* const> states);
  void run_launches(const RunArguments& arguments, const ArenaGuard& guard);
  std::int64_t planned_bytes(int buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return aligned_bytes(program_.buffers[b].dtype, planned_->elements[b]);
  }
  bool is_scratch(int buffer) const { return program_.buffers[buffer].kind == ProgramBuffer::Kind::scratch; }

  const Program& program_;
  codegen::CompiledKernels kernels_;
  RunThreads threads_;
  bool poison_;
  DimBindings reserve_;
  TaskSizes tasks_;
  const std::vector<bool>* skipped_;
  std::map<int, HostTensor> constants_;
  std::vector<bool> written_;  ///< by state

  DimTable table_;
  std::vector<LaunchSizes> launch_sizes_;
  std::vector<std::size_t> buffer_elements_;  ///< by buffer: the position of its size

  DimBindings bound_;  ///< the dims that the members below were prepared for, if is_bound_
  bool is_bound_ = false;
  std::vector<std::int64_t> sizes_;  ///< by position in the table
  MemoryPlanner planner_;
  LaunchGrouping grouping_;
  std::vector<std::int64_t> planned_sizes_;  ///< by position in the table
  std::optional<Planned> planned_;
  KeptCopies kept_;
  Arena arena_;                                ///< as large as the largest plan
  std::vector<Call> calls_;                    ///< by launch
  std::vector<void*> where_;                   ///< by buffer
  std::vector<bool> together_;                 ///< by group: its launches run concurrently
  std::vector<BoundLoop> loops_;               ///< by loop of the program
  std::vector<std::int64_t> iterations_;       ///< by loop: the current one
  std::vector<std::vector<void**>> pointers_;  ///< by buffer: the places in `calls_` that hold the start of a slice
  CpuCollectives collectives_;
};

CpuRunner::CpuRunner(const Program& program, codegen::CompiledKernels kernels, const CpuRunnerOptions& options)
    : program_(program),
      kernels_(std::move(kernels)),
      threads_(options.threads, options.own_threads),
      poison_(options.poison || ArenaGuard::always_poisons()),
      reserve_(options.reserve),
      tasks_(options.tasks),
      skipped_(options.skipped),
      constants_(constant_tensors(program)),
      planner_(program, options.threads),
      grouping_(program),
      kept_(program),
      calls_(program.launches.size()),
      where_(program.buffers.size()),
      iterations_(program.loops.size()),
      pointers_(program.buffers.size()),
      collectives_(program, kernels_, table_, options.ranks) {
  const std::vector<bool> written = written_buffers(program);
  for (const Program::Slot& slot : program.states) written_.push_back(written[slot.buffer]);
  for (const ProgramBuffer& buffer : program.buffers) buffer_elements_.push_back(table_.add(buffer.elements));
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    const Launch& launch = program.launches[l];
    LaunchSizes& sizes = launch_sizes_.emplace_back();
    for (const Dim& dim : launch.dims) sizes.dims.push_back(table_.add(dim));
    sizes.work = table_.add(launch.work);
    sizes.flops = table_.add(launch.flops);
    sizes.bytes = table_.add(launch.bytes);
    if (launch.condition) sizes.condition = table_.add(launch.condition->size);
    const bool scratch =
        std::any_of(launch.buffers.begin(), launch.buffers.end(), [&](int b) { return is_scratch(b); });
    calls_[l].dims.resize(launch.dims.size());
    calls_[l].buffers.assign(scratch ? static_cast<std::size_t>(threads_.size()) : 1,
                             std::vector<void*>(launch.buffers.size()));
    for (std::size_t i = 0; i < launch.buffers.size(); ++i)
      if (program.buffers[launch.buffers[i]].slice)
        for (std::vector<void*>& own : calls_[l].buffers) pointers_[launch.buffers[i]].push_back(&own[i]);
  }
}

bool CpuRunner::only_reads(std::span<StoredTensor* const> states) const {
  for (std::size_t i = 0; i < states.size(); ++i)
    if (written_[i] || !states[i]->host_is_current) return false;
  return true;
}

/// Returns whether the temporaries of the current sizes fit a plan.
bool CpuRunner::has_room(const Planned& planned) const {
  return std::ranges::all_of(planned.plan.blocks, [&](const MemoryPlan::Block& block) {
    const auto buffer = static_cast<std::size_t>(block.buffer);
    return sizes_[buffer_elements_[buffer]] <= planned.elements[buffer];
  });
}

/// Plans memory for these dims, or for the reserved sizes of dims that are larger.
void CpuRunner::make_plan(const DimBindings& dims) {
  Planned planned = planned_ ? std::move(*planned_) : Planned{};
  planned_.reset();
  DimBindings largest = dims;
  for (auto& [name, size] : largest)
    if (const auto reserved = reserve_.find(name); reserved != reserve_.end())
      size = std::max(size, reserved->second);
  const auto plan_for = [&](const DimBindings& planned_dims) {
    planned.dims = planned_dims;
    table_.evaluate(planned_dims, planned_sizes_);
    planned.elements.clear();
    for (const std::size_t size : buffer_elements_) planned.elements.push_back(planned_sizes_[size]);
    planned.plan = planner_.plan(planned.elements);
  };
  plan_for(largest);
  if (!has_room(planned)) plan_for(dims);  // a temporary can shrink as a dim grows
  planned.groupings.clear();
  // One for runs with few rows and one for runs with more, so that a change between them allocates nothing.
  for (const bool is_below : {true, false}) {
    std::vector<bool> skips;
    for (const Launch& launch : program_.launches)
      skips.push_back(launch.condition && launch.condition->is_below != is_below);
    add_grouping(planned, std::move(skips));
  }
  planned_ = std::move(planned);
}

void CpuRunner::add_grouping(Planned& planned, std::vector<bool> skips) const {
  Grouping grouping{.groups = grouping_.groups(planned.plan, skips)};
  std::vector<int> starts;
  for (const LaunchGroup& group : grouping.groups) starts.push_back(group.first);
  starts.push_back(static_cast<int>(program_.launches.size()));
  grouping.steps = LoopSteps(program_, starts);
  grouping.skips = std::move(skips);
  constexpr std::size_t most_groupings = 8;
  if (planned.groupings.size() == most_groupings) planned.groupings.pop_back();
  planned.groupings.push_back(std::move(grouping));
}

/// Finds or makes the groups of the launches that run with the current sizes.
void CpuRunner::group_launches() {
  const auto fits = [&](const Grouping& grouping) {
    for (std::size_t l = 0; l < calls_.size(); ++l)
      if (grouping.skips[l] != (calls_[l].extent == 0)) return false;
    return true;
  };
  auto found = std::ranges::find_if(planned_->groupings, fits);
  if (found == planned_->groupings.end()) {
    std::vector<bool> skips;
    for (const Call& call : calls_) skips.push_back(call.extent == 0);
    add_grouping(*planned_, std::move(skips));
    found = std::prev(planned_->groupings.end());
  }
  std::iter_swap(planned_->groupings.begin(), found);
}

/// Allocates the arena of the plan unless the current one is large enough.
void CpuRunner::make_room() {
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(planned_->plan.arena_bytes, cache_line_bytes));
  if (arena_.size() >= bytes) return;
  arena_ = {};  // freed first, so that both do not exist at the same time
  arena_ = Arena(bytes);
}

std::int64_t CpuRunner::plan(const DimBindings& dims) {
  is_bound_ = false;
  table_.evaluate(dims, sizes_);
  make_plan(dims);
  return planned_->plan.arena_bytes;
}

/// Returns whether the condition of a launch does not hold, or everything that it writes is empty, under the current
/// sizes.
bool CpuRunner::is_skipped(std::size_t number) const {
  const Launch& launch = program_.launches[number];
  if (launch.condition && !launch.condition->holds(sizes_[launch_sizes_[number].condition])) return true;
  const kernel::Kernel& kernel = program_.kernels[launch.kernel];
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const auto buffer = static_cast<std::size_t>(launch.buffers[i]);
    if (kernel.buffers[i].access == kernel::Access::read || is_scratch(launch.buffers[i])) continue;
    if (sizes_[buffer_elements_[buffer]] > 0) return false;
  }
  return true;
}

void CpuRunner::prepare(const DimBindings& dims) {
  if (is_bound_ && bound_ == dims) return;
  is_bound_ = false;
  table_.evaluate(dims, sizes_);
  if (!planned_ || !has_room(*planned_)) make_plan(dims);
  make_room();
  for (std::size_t l = 0; l < calls_.size(); ++l) {
    Call& call = calls_[l];
    const LaunchSizes& at = launch_sizes_[l];
    for (std::size_t d = 0; d < at.dims.size(); ++d) call.dims[d] = sizes_[at.dims[d]];
    call.extent = is_skipped(l) ? 0 : kernels_[program_.launches[l].kernel].extent(call.dims.data());
    const std::int64_t of_memory = sizes_[at.bytes] / std::max<std::int64_t>(1, call.extent) * tasks_.byte_work;
    const std::int64_t work = std::max(sizes_[at.work], of_memory);
    call.grain = std::max<std::int64_t>(1, grain_of(tasks_, call.extent, work));
    const std::int64_t together = tasks_.together_work;
    call.work = call.extent > 0 && work > together / call.extent ? together : work * call.extent;
    call.gflops = call.extent > 0 ? static_cast<double>(sizes_[at.flops]) * 1e-9 : 0;
  }
  for (int l = 0; l < kept_.launches(); ++l)
    if (calls_[l].extent > 0) kept_.allocate(l);
  group_launches();
  loops_ = bind_loops(program_, dims);
  together_.clear();
  for (const LaunchGroup& group : planned_->grouping().groups) together_.push_back(runs_together(group));
  bound_ = dims;
  is_bound_ = true;
}

void CpuRunner::point_buffers(const RunArguments& arguments) {
  const auto at = [&](int buffer) -> void*& { return where_[buffer]; };
  for (const MemoryPlan::Block& block : planned_->plan.blocks) at(block.buffer) = arena_.data() + block.offset;
  // Kernels only read inputs and constants; const is cast away because all kernels share one signature.
  for (std::size_t i = 0; i < program_.inputs.size(); ++i)
    at(program_.inputs[i].buffer) = const_cast<std::byte*>(arguments.inputs[i]);
  for (std::size_t i = 0; i < program_.states.size(); ++i) {
    at(program_.states[i].buffer) = arguments.states[i]->on_host().data();
    if (!written_[i]) continue;
    arguments.states[i]->device_is_current = false;
    arguments.states[i]->note_write();
  }
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    const auto b = static_cast<std::size_t>(program_.outputs[i].buffer);
    where_[b] = arguments.outputs[i];
    if (!poison_) continue;
    const DType dtype = program_.buffers[b].dtype;
    poison({arguments.outputs[i], static_cast<std::size_t>(sizes_[buffer_elements_[b]]) * size_in_bytes(dtype)},
           dtype);
  }
  for (auto& [buffer, value] : constants_) at(buffer) = value.data();
  for (int l = 0; l < kept_.launches(); ++l) at(kept_.buffer(l)) = kept_.memory(l).data();
  for (std::size_t l = 0; l < calls_.size(); ++l)
    for (std::size_t t = 0; t < calls_[l].buffers.size(); ++t)
      for (std::size_t i = 0; i < program_.launches[l].buffers.size(); ++i) {
        const int b = program_.launches[l].buffers[i];
        void*& pointer = calls_[l].buffers[t][i] = at(b);
        if (is_scratch(b))
          pointer =
              static_cast<std::byte*>(pointer) + static_cast<std::int64_t>(t) * scratch_stride(planned_bytes(b));
      }
}

void CpuRunner::run_range(std::size_t index, std::int64_t begin, std::int64_t end, int thread,
                          std::atomic<std::int64_t>& failure) const {
  const Call& call = calls_[index];
  std::int64_t status = 0;
  const auto own = std::min(static_cast<std::size_t>(thread), call.buffers.size() - 1);
  kernels_[program_.launches[index].kernel].run(call.buffers[own].data(), call.dims.data(), begin, end, &status);
  // If several checks fail, the lowest code is kept, independently of the order of the threads.
  std::int64_t seen = failure;
  while (status != 0 && (seen == 0 || status < seen) && !failure.compare_exchange_weak(seen, status)) {
  }
}

void CpuRunner::launch(std::size_t index, RangeRecorder* recorder) {
  const Call& call = calls_[index];
  std::atomic<std::int64_t> failure = 0;
  const auto body = [&](std::int64_t begin, std::int64_t end, int thread) {
    const double started = recorder ? recorder->now() : 0;
    run_range(index, begin, end, thread, failure);
    if (recorder) recorder->add(thread, begin, end, started);
  };
  if (call.extent > call.grain) {
    threads_.pool().run(call.extent, call.grain, body);
  } else if (call.extent > 0) {
    body(0, call.extent, 0);
  }
  check_status(program_.launches[index], failure);
}

/// Returns whether the launches of a group run concurrently. This avoids barriers between launches with little work,
/// and idle threads at the end of each part of a value. Launches with more work run in sequence: each thread then
/// gets the same share of every launch, so its data stays in its caches.
bool CpuRunner::runs_together(const LaunchGroup& group) const {
  if (group.first == group.last || threads_.size() == 1) return false;
  std::int64_t work = 0;
  bool parallel = false;
  for (int l = group.first; l <= group.last; ++l) {
    const Call& call = calls_[l];
    work += call.work;
    parallel = parallel || call.extent > call.grain;
  }
  const bool parts = program_.launches[group.first].part_of >= 0;
  return parallel && (parts || work < tasks_.together_work);
}

/// Runs a group as one parallel loop over the chunks of all its launches.
void CpuRunner::launch_together(const LaunchGroup& group) {
  std::int64_t chunks = 0;
  for (int l = group.first; l <= group.last; ++l) chunks += calls_[l].chunks();
  std::atomic<std::int64_t> failure = 0;
  threads_.pool().run(chunks, 1, [&](std::int64_t begin, std::int64_t, int thread) {
    auto l = static_cast<std::size_t>(group.first);
    std::int64_t chunk = begin;
    for (; chunk >= calls_[l].chunks(); ++l) chunk -= calls_[l].chunks();
    const Call& call = calls_[l];
    run_range(l, chunk * call.grain, std::min((chunk + 1) * call.grain, call.extent), thread, failure);
  });
  for (int l = group.last; failure != 0; --l)  // parts have the same checks
    if (calls_[l].extent > 0) check_status(program_.launches[l], failure);
}

/// Runs a launch and adds its time to that of its previous runs.
void CpuRunner::launch_timed(std::size_t index, Run& run) {
  const double before = run.recorder.now();
  launch(index, &run.recorder);
  const double seconds = run.recorder.now() - before;
  const Call& call = calls_[index];
  if (run.time_of[index] < 0) {
    run.time_of[index] = static_cast<int>(run.times->size());
    run.times->push_back({static_cast<int>(index), before, seconds, call.gflops, call.extent, run.recorder.take()});
    return;
  }
  LaunchTime& time = (*run.times)[run.time_of[index]];
  time.seconds += seconds;
  time.gflops += call.gflops;
  ++time.runs;
  add_ranges(time.ranges, run.recorder.take());
}

void CpuRunner::run_group(std::size_t number, Run& run) {
  const LaunchGroup& group = planned_->grouping().groups[number];
  // Launches run separately if each one is checked, skipped or timed.
  if (together_[number] && !poison_ && !skipped_ && !run.times) {
    collectives_.before_launch(group.first);
    launch_together(group);
    return;
  }
  for (auto l = static_cast<std::size_t>(group.first); l <= static_cast<std::size_t>(group.last); ++l) {
    if (skipped_ && (*skipped_)[l]) continue;
    if (poison_) run.guard.before_launch(l);
    collectives_.before_launch(static_cast<int>(l));
    if (run.times)
      launch_timed(l, run);
    else
      launch(l, nullptr);
  }
}

/// Moves the slices of a loop to their places in an iteration.
void CpuRunner::point_slices(int loop, std::int64_t iteration) {
  const BoundLoop& bound = loops_[loop];
  for (const BoundLoop::Slice& slice : bound.slices) {
    void* const start = static_cast<std::byte*>(where_[slice.of]) + bound.offset(slice, iteration);
    where_[slice.buffer] = start;
    for (void** const pointer : pointers_[slice.buffer]) *pointer = start;
  }
}

/// Packs the parameters that have changed since they were packed.
void CpuRunner::pack_parameters(Run& run, std::span<StoredTensor* const> states) {
  for (int l = 0; l < kept_.launches(); ++l) {
    const auto number = static_cast<std::size_t>(l);
    if (calls_[number].extent == 0 || (skipped_ && (*skipped_)[number]) || kept_.is_current(l, states)) continue;
    if (poison_) poison(kept_.memory(l), program_.buffers[kept_.buffer(l)].dtype);
    run.times ? launch_timed(number, run) : launch(number, nullptr);
    kept_.note(l, states);
  }
}

void CpuRunner::run_launches(const RunArguments& arguments, const ArenaGuard& guard) {
  Run run{guard, arguments.times, RangeRecorder(Clock::now()), {}};
  if (arguments.times) run.time_of.assign(calls_.size(), -1);
  pack_parameters(run, arguments.states);
  const auto run_unit = [&](int group) {
    if (planned_->grouping().groups[group].first >= kept_.launches()) run_group(static_cast<std::size_t>(group), run);
  };
  planned_->grouping().steps.run(loops_, iterations_, run_unit,
                                 [&](int loop, std::int64_t iteration) { point_slices(loop, iteration); });
  collectives_.before_launch(static_cast<int>(calls_.size()));
}

void CpuRunner::run(const RunArguments& arguments) {
  prepare(arguments.dims);
  point_buffers(arguments);
  std::ranges::fill(iterations_, 0);  // the previous run may have failed
  const ArenaGuard guard(program_, planned_->plan, planned_->dims, arena_.bytes(), poison_, iterations_);
  collectives_.begin(sizes_, where_);
  try {
    run_launches(arguments, guard);
  } catch (...) {
    threads_.end_run();
    collectives_.stop();
    throw;
  }
  threads_.end_run();
}

}  // namespace

std::unique_ptr<ProgramRunner> make_cpu_runner(const Program& program, codegen::CompiledKernels kernels,
                                               const CpuRunnerOptions& options) {
  return std::make_unique<CpuRunner>(program, std::move(kernels), options);
}

}  // namespace lathe
