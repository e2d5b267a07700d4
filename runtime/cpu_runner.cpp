#include "runtime/cpu_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "runtime/machine/arena.h"
#include "runtime/machine/arena_guard.h"
#include "runtime/threads/thread_pool.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// How many iterations of a parallel loop make one chunk, each being `work` scalar operations: enough that handing it
/// out costs little (these operations take 5 to 20 microseconds), and no more chunks than any number of threads needs
/// to be evenly loaded, for each thread walks on through memory, and asks for its next rows, only inside a chunk: few
/// chunks of light iterations, which are equal, more of heavy ones. Chunks are equally large, and few ones a number
/// that threads share evenly.
std::int64_t grain_of(std::int64_t extent, std::int64_t work) {
  constexpr std::int64_t least_work = 1 << 18, heavy = 1 << 22;
  const std::int64_t most_chunks = work < heavy ? 64 : 256;
  const std::int64_t least = least_work / std::max<std::int64_t>(1, work);
  const std::int64_t grain = std::max({std::int64_t{1}, least, extent / most_chunks});
  const std::int64_t fewest = (extent + grain - 1) / grain, chunks = fewest <= 2 ? fewest : (fewest + 3) / 4 * 4;
  return chunks > 0 ? (extent + chunks - 1) / chunks : grain;
}

/// Collects who ran what, and when; threads report at the same time.
class RangeRecorder {
 public:
  explicit RangeRecorder(Clock::time_point start) : start_(start) {}

  double now() const { return seconds_since(start_); }

  void add(int thread, std::int64_t begin, std::int64_t end, double started) {
    const double seconds = now() - started;
    const std::lock_guard lock(mutex_);
    ranges_.push_back({thread, begin, end, started, seconds});
  }

  /// What came together since the last call.
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

class CpuRunner final : public ProgramRunner {
 public:
  CpuRunner(const Program& program, codegen::CompiledKernels kernels, int threads, const std::vector<bool>* skipped,
            bool poisons)
      : program_(program),
        kernels_(std::move(kernels)),
        threads_(std::make_unique<ThreadPool>(threads)),
        skipped_(skipped),
        poisons_(poisons),
        constants_(constant_tensors(program)) {}

  ir::Tensors run(const DimBindings& dims, const ir::Tensors& inputs, ir::Tensors& states,
                  std::vector<LaunchTime>* times) override;
  // The states are worked on where the host has them.
  void state_was_set(const std::string&) override {}
  void fetch_states(ir::Tensors&) override {}
  MemoryPlan memory_plan(const DimBindings& dims) const override {
    return plan_memory(program_, dims, threads_->size());
  }

 private:
  /// Everything that depends on the dims' values: made once for each binding that occurs in a row.
  struct Bound {
    DimBindings dims;
    MemoryPlan plan;
    Arena arena;
    struct Call {
      std::vector<std::vector<void*>> buffers;  ///< by thread; the first serves all of a launch without scratch
      std::vector<std::int64_t> dims;
      std::int64_t extent = 0, grain = 1;
      double gflops = 0;
    };
    std::vector<Call> calls;
    bool valid = false;
  };

  void prepare(const DimBindings& dims);
  void point_buffers(const ir::Tensors& inputs, ir::Tensors& states, ir::Tensors& outputs);
  void launch(std::size_t index, RangeRecorder* recorder);
  bool is_scratch(int buffer) const {
    return program_.buffers[static_cast<std::size_t>(buffer)].kind == ProgramBuffer::Kind::scratch;
  }

  const Program& program_;
  codegen::CompiledKernels kernels_;
  std::unique_ptr<ThreadPool> threads_;
  const std::vector<bool>* skipped_;
  bool poisons_;
  std::map<int, HostTensor> constants_;
  Bound bound_;
};

void CpuRunner::prepare(const DimBindings& dims) {
  if (bound_.valid && bound_.dims == dims) return;
  bound_ = {};
  bound_.dims = dims;
  bound_.plan = plan_memory(program_, dims, threads_->size());
  bound_.arena = Arena(static_cast<std::size_t>(std::max<std::int64_t>(bound_.plan.arena_bytes, 64)));
  for (const Launch& launch : program_.launches) {
    Bound::Call call;
    const bool scratch =
        std::any_of(launch.buffers.begin(), launch.buffers.end(), [&](int b) { return is_scratch(b); });
    call.buffers.assign(scratch ? static_cast<std::size_t>(threads_->size()) : 1,
                        std::vector<void*>(launch.buffers.size()));
    for (const Dim& dim : launch.dims) call.dims.push_back(dim.evaluate(dims));
    if (!writes_nothing(program_, launch, dims))
      call.extent = kernels_[static_cast<std::size_t>(launch.kernel)].extent(call.dims.data());
    call.grain = grain_of(call.extent, launch.work.evaluate(dims));
    call.gflops = static_cast<double>(launch.flops.evaluate(dims)) * 1e-9;
    bound_.calls.push_back(std::move(call));
  }
  bound_.valid = true;
}

void CpuRunner::point_buffers(const ir::Tensors& inputs, ir::Tensors& states, ir::Tensors& outputs) {
  std::vector<void*> where(program_.buffers.size(), nullptr);
  for (const MemoryPlan::Block& block : bound_.plan.blocks)
    where[static_cast<std::size_t>(block.buffer)] = bound_.arena.data() + block.offset;
  // Kernels only read inputs and constants: the cast away of const is for the one signature of all kernels.
  for (const Program::Slot& slot : program_.inputs)
    where[static_cast<std::size_t>(slot.buffer)] = const_cast<std::byte*>(inputs.at(slot.name).data());
  for (const Program::Slot& slot : program_.states)
    where[static_cast<std::size_t>(slot.buffer)] = states.at(slot.name).data();
  for (const Program::Slot& slot : program_.outputs) {
    HostTensor& tensor = outputs[slot.name] = HostTensor(slot.dtype, slot.shape.evaluate(bound_.dims));
    if (poisons_) poison({tensor.data(), tensor.bytes()}, slot.dtype);
    where[static_cast<std::size_t>(slot.buffer)] = tensor.data();
  }
  for (auto& [buffer, value] : constants_) where[static_cast<std::size_t>(buffer)] = value.data();
  for (std::size_t l = 0; l < program_.launches.size(); ++l)
    for (std::size_t t = 0; t < bound_.calls[l].buffers.size(); ++t)
      for (std::size_t i = 0; i < program_.launches[l].buffers.size(); ++i) {
        const auto b = static_cast<std::size_t>(program_.launches[l].buffers[i]);
        void*& pointer = bound_.calls[l].buffers[t][i] = where[b];
        if (is_scratch(static_cast<int>(b)))
          pointer = static_cast<std::byte*>(pointer) +
                    static_cast<std::int64_t>(t) * scratch_stride(program_.buffers[b], bound_.dims);
      }
}

void CpuRunner::launch(std::size_t index, RangeRecorder* recorder) {
  const Launch& launch = program_.launches[index];
  const Bound::Call& call = bound_.calls[index];
  const codegen::CompiledKernel& kernel = kernels_[static_cast<std::size_t>(launch.kernel)];
  std::atomic<std::int64_t> failure = 0;
  const auto body = [&](std::int64_t begin, std::int64_t end, int thread) {
    const double started = recorder ? recorder->now() : 0;
    std::int64_t status = 0;
    const auto own = std::min(static_cast<std::size_t>(thread), call.buffers.size() - 1);
    kernel.run(call.buffers[own].data(), call.dims.data(), begin, end, &status);
    if (status != 0) failure = status;
    if (recorder) recorder->add(thread, begin, end, started);
  };
  if (call.extent > call.grain) {
    threads_->run(call.extent, call.grain, body);
  } else if (call.extent > 0) {
    body(0, call.extent, 0);
  }
  check_status(launch, failure);
}

ir::Tensors CpuRunner::run(const DimBindings& dims, const ir::Tensors& inputs, ir::Tensors& states,
                           std::vector<LaunchTime>* times) {
  prepare(dims);
  ir::Tensors outputs;
  point_buffers(inputs, states, outputs);
  const ArenaGuard guard(program_, bound_.plan, bound_.dims, bound_.arena.bytes(), poisons_);
  RangeRecorder recorder(Clock::now());
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    if (skipped_ && (*skipped_)[l]) continue;
    guard.before_launch(l);
    const double before = times ? recorder.now() : 0;
    launch(l, times ? &recorder : nullptr);
    if (times)
      times->push_back({static_cast<int>(l), before, recorder.now() - before, bound_.calls[l].gflops,
                        bound_.calls[l].extent, recorder.take()});
  }
  return outputs;
}

}  // namespace

std::unique_ptr<ProgramRunner> make_cpu_runner(const Program& program, codegen::CompiledKernels kernels, int threads,
                                               const std::vector<bool>* skipped, bool poisons) {
  return std::make_unique<CpuRunner>(program, std::move(kernels), threads, skipped, poisons);
}

}  // namespace lathe
