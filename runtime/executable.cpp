#include "runtime/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "ir/tensor/binding.h"
#include "passes/lowering/lower.h"
#include "passes/lowering/signature.h"
#include "runtime/machine/arena.h"
#include "runtime/machine/arena_guard.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// How many iterations of a parallel loop make one chunk, each being `work` scalar operations: enough that handing it
/// out costs little (these operations take 5 to 20 microseconds), and no more chunks than any number of threads needs
/// to be evenly loaded, for each thread walks on through memory only inside a chunk.
std::int64_t grain_of(std::int64_t extent, std::int64_t work) {
  constexpr std::int64_t least_work = 1 << 18, most_chunks = 256;
  const std::int64_t least = least_work / std::max<std::int64_t>(1, work);
  return std::max({std::int64_t{1}, least, extent / most_chunks});
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

}  // namespace

struct Executable::Impl {
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

  ir::Graph signature;  ///< arguments and checks of the graph as given
  Program program;
  codegen::CompiledKernels kernels;
  CompileSummary summary;
  std::unique_ptr<ThreadPool> threads;
  std::vector<HostTensor> constants;
  ir::Tensors states;
  Bound bound;
  std::mutex running;

  DimBindings bind(const ir::Tensors& inputs) const;
  void prepare(const DimBindings& dims);
  void point_buffers(const ir::Tensors& inputs, ir::Tensors& outputs);
  void launch(std::size_t index, RangeRecorder* recorder);
  bool is_scratch(int buffer) const {
    return program.buffers[static_cast<std::size_t>(buffer)].kind == ProgramBuffer::Kind::scratch;
  }
  ir::Tensors run(const ir::Tensors& inputs, std::vector<LaunchTime>* times);
  void check_status(const Launch& launch, std::int64_t code) const;
};

DimBindings Executable::Impl::bind(const ir::Tensors& inputs) const {
  std::map<std::string, ir::ArgumentShape> shapes;
  for (const auto& [name, tensor] : inputs) shapes[name] = {tensor.dtype(), tensor.shape()};
  for (const auto& [name, tensor] : states) {
    if (shapes.contains(name))
      throw UserError(fmt::format("{} is a parameter or state of @{}, not an input", name, program.name),
                      "argument_unknown", "set it with set_state");
    shapes[name] = {tensor.dtype(), tensor.shape()};
  }
  for (const Program::Slot& slot : program.states)
    if (!states.contains(slot.name))
      throw UserError(fmt::format("the {} {}: {}{} of @{} has no value", slot.is_parameter ? "parameter" : "state",
                                  slot.name, lathe::name(slot.dtype), slot.shape.to_string(), program.name),
                      "state_unset", "set it with set_state before the first run");
  return ir::bind_dims(signature, shapes);
}

void Executable::Impl::prepare(const DimBindings& dims) {
  if (bound.valid && bound.dims == dims) return;
  bound = {};
  bound.dims = dims;
  bound.plan = plan_memory(program, dims, threads->size());
  bound.arena = Arena(static_cast<std::size_t>(std::max<std::int64_t>(bound.plan.arena_bytes, 64)));
  for (const Launch& launch : program.launches) {
    Bound::Call call;
    const bool scratch =
        std::any_of(launch.buffers.begin(), launch.buffers.end(), [&](int b) { return is_scratch(b); });
    call.buffers.assign(scratch ? static_cast<std::size_t>(threads->size()) : 1,
                        std::vector<void*>(launch.buffers.size()));
    for (const Dim& dim : launch.dims) call.dims.push_back(dim.evaluate(dims));
    call.extent = kernels[static_cast<std::size_t>(launch.kernel)].extent(call.dims.data());
    call.grain = grain_of(call.extent, launch.work.evaluate(dims));
    call.gflops = static_cast<double>(launch.flops.evaluate(dims)) * 1e-9;
    bound.calls.push_back(std::move(call));
  }
  bound.valid = true;
}

void Executable::Impl::point_buffers(const ir::Tensors& inputs, ir::Tensors& outputs) {
  std::vector<void*> where(program.buffers.size(), nullptr);
  for (const MemoryPlan::Block& block : bound.plan.blocks)
    where[static_cast<std::size_t>(block.buffer)] = bound.arena.data() + block.offset;
  // Kernels only read inputs and constants: the cast away of const is for the one signature of all kernels.
  for (const Program::Slot& slot : program.inputs)
    where[static_cast<std::size_t>(slot.buffer)] = const_cast<std::byte*>(inputs.at(slot.name).data());
  for (const Program::Slot& slot : program.states)
    where[static_cast<std::size_t>(slot.buffer)] = states.at(slot.name).data();
  for (const Program::Slot& slot : program.outputs) {
    HostTensor& tensor = outputs[slot.name] = HostTensor(slot.dtype, slot.shape.evaluate(bound.dims));
    where[static_cast<std::size_t>(slot.buffer)] = tensor.data();
  }
  std::size_t next = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].kind == ProgramBuffer::Kind::constant) where[b] = constants[next++].data();
  for (std::size_t l = 0; l < program.launches.size(); ++l)
    for (std::size_t t = 0; t < bound.calls[l].buffers.size(); ++t)
      for (std::size_t i = 0; i < program.launches[l].buffers.size(); ++i) {
        const auto b = static_cast<std::size_t>(program.launches[l].buffers[i]);
        void*& pointer = bound.calls[l].buffers[t][i] = where[b];
        if (is_scratch(static_cast<int>(b)))
          pointer = static_cast<std::byte*>(pointer) +
                    static_cast<std::int64_t>(t) * buffer_bytes(program.buffers[b], bound.dims);
      }
}

void Executable::Impl::check_status(const Launch& launch, std::int64_t code) const {
  if (code == 0) return;
  const auto at = static_cast<std::size_t>(code - 1);
  const std::string message = at < launch.checks.size() ? launch.checks[at] : "a run-time check failed";
  throw UserError(launch.loc, launch.names.empty() ? std::string("kernel") : launch.names.front(), message,
                  "index_range", "look at the integers that are passed in");
}

void Executable::Impl::launch(std::size_t index, RangeRecorder* recorder) {
  const Launch& launch = program.launches[index];
  const Bound::Call& call = bound.calls[index];
  const codegen::CompiledKernel& kernel = kernels[static_cast<std::size_t>(launch.kernel)];
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
    threads->run(call.extent, call.grain, body);
  } else if (call.extent > 0) {
    body(0, call.extent, 0);
  }
  check_status(launch, failure);
}

ir::Tensors Executable::Impl::run(const ir::Tensors& inputs, std::vector<LaunchTime>* times) {
  const std::lock_guard lock(running);
  prepare(bind(inputs));
  ir::Tensors outputs;
  point_buffers(inputs, outputs);
  const ArenaGuard guard(program, bound.plan, bound.dims, bound.arena.bytes());
  RangeRecorder recorder(Clock::now());
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    guard.before_launch(l);
    const double before = times ? recorder.now() : 0;
    launch(l, times ? &recorder : nullptr);
    if (times)
      times->push_back({static_cast<int>(l), before, recorder.now() - before, bound.calls[l].gflops,
                        bound.calls[l].extent, recorder.take()});
  }
  return outputs;
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

void Executable::set_state(std::string_view name, const HostTensor& value) {
  for (const Program::Slot& slot : impl_->program.states) {
    if (slot.name != name) continue;
    if (slot.dtype != value.dtype())
      throw UserError(
          fmt::format("{} is {}, the value given is {}", name, lathe::name(slot.dtype), lathe::name(value.dtype())),
          "argument_dtype", "cast the value first");
    bool fits = static_cast<std::int64_t>(slot.shape.rank()) == value.rank();
    for (int d = 0; fits && d < slot.shape.rank(); ++d)
      fits = slot.shape[d].value().value_or(value.shape()[static_cast<std::size_t>(d)]) ==
             value.shape()[static_cast<std::size_t>(d)];
    if (!fits)
      throw UserError(fmt::format("{} is {}{}, the value given is {}", name, lathe::name(slot.dtype),
                                  slot.shape.to_string(), shape_to_string(value.shape())),
                      "argument_shape", "give a value of that shape");
    impl_->states[slot.name] = value;
    return;
  }
  throw UserError(fmt::format("@{} has no parameter or state named {}", impl_->program.name, name),
                  "argument_unknown", "see program().states for their names");
}

void Executable::set_states(const ir::Tensors& values) {
  for (const auto& [name, value] : values) set_state(name, value);
}

const HostTensor& Executable::state(std::string_view name) const {
  const auto at = impl_->states.find(std::string(name));
  if (at != impl_->states.end()) return at->second;
  for (const Program::Slot& slot : impl_->program.states)
    if (slot.name == name)
      throw UserError(fmt::format("{} of @{} has no value yet", name, impl_->program.name), "state_unset",
                      "set it with set_state");
  throw UserError(fmt::format("@{} has no parameter or state named {}", impl_->program.name, name),
                  "argument_unknown", "see program().states for their names");
}

const ir::Tensors& Executable::states() const { return impl_->states; }
ir::Tensors Executable::run(const ir::Tensors& inputs) { return impl_->run(inputs, nullptr); }
ir::Tensors Executable::run_traced(const ir::Tensors& inputs, std::vector<LaunchTime>& times) {
  return impl_->run(inputs, &times);
}
const CompileSummary& Executable::summary() const { return impl_->summary; }
const Program& Executable::program() const { return impl_->program; }
MemoryPlan Executable::memory_plan(const DimBindings& dims) const {
  return plan_memory(impl_->program, dims, impl_->threads->size());
}
DimBindings Executable::bind(const ir::Tensors& inputs) const { return impl_->bind(inputs); }

namespace {

HostTensor constant_tensor(const ProgramBuffer& buffer) {
  return HostTensor::from({static_cast<std::int64_t>(buffer.data.size())}, buffer.data, buffer.dtype);
}

}  // namespace

Executable compile(const ir::Graph& graph, const CompileOptions& options) {
  auto impl = std::make_unique<Executable::Impl>();
  impl->signature = signature_of(graph);
  impl->summary.ops = graph.size() - static_cast<int>(graph.arguments().size());

  auto start = Clock::now();
  ir::PipelineResult passed = ir::run_pipeline(graph, ir::default_pipeline(), options.pipeline);
  impl->summary.passes = passed.runs;
  impl->summary.nodes = passed.graph.size();
  impl->summary.pass_seconds = seconds_since(start);

  start = Clock::now();
  impl->program = lower(passed.graph, {options.target.cpu.vector_bits}, options.lower);
  set_user_types(impl->program, graph);
  impl->summary.lower_seconds = seconds_since(start);
  impl->summary.kernels = static_cast<int>(impl->program.kernels.size());
  impl->summary.launches = static_cast<int>(impl->program.launches.size());

  start = Clock::now();
  const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const codegen::Jit jit({.target = options.target.cpu, .threads = cpus}, options.cache);
  impl->kernels = jit.compile(impl->program.kernels);
  impl->summary.compiled = impl->kernels.stats().compiled;
  impl->summary.from_cache = impl->kernels.stats().from_store;
  impl->summary.codegen_seconds = seconds_since(start);

  for (const ProgramBuffer& buffer : impl->program.buffers)
    if (buffer.kind == ProgramBuffer::Kind::constant) impl->constants.push_back(constant_tensor(buffer));
  impl->threads = std::make_unique<ThreadPool>(options.threads > 0 ? options.threads : cpus);
  return Executable(std::move(impl));
}

}  // namespace lathe
