// Compares C libraries of emit_library() with code that is compiled in this process, in turns:
//   bench_c_library [--rounds N] [--threads N] [--packed-weights] [STEP ...]
// STEP: a step of `lathe bench` (gpt2, llama-block, decode-1024, ..), gpt2 by default. The code in this process packs
// weights once; with --packed-weights, the library does too. Prints the median time of a
// run of each, and of their ratio within a round; the bytes of the code for the CPU level and of the interface; the
// time from no code to the end of the first run, and that of a later run. Both run on a thread pool of the same kind.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/cases/step_cases.h"
#include "codegen/llvm/loader.h"
#include "frontend/train/training.h"
#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "runtime/compile.h"
#include "runtime/emit_library.h"
#include "runtime/threads/thread_pool.h"

namespace {

using namespace lathe;
using Clock = std::chrono::steady_clock;
using Task = void (*)(void*, std::int64_t, std::int32_t);

template <class F>
double seconds(const F& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// lathe_workers of a library's header, over a thread pool.
struct Workers {
  void (*parallel_for)(void* context, std::int64_t count, Task task, void* argument);
  void* context;
  std::int32_t count;
};
Workers workers_of(ThreadPool& pool) {
  return {[](void* context, std::int64_t count, Task task, void* argument) {
            static_cast<ThreadPool*>(context)->run(
                count, 1, [&](std::int64_t i, std::int64_t, int worker) { task(argument, i, worker); });
          },
          &pool, pool.size()};
}

/// A library of one graph, linked into this process.
class LinkedLibrary {
 public:
  LinkedLibrary(const ir::Graph& graph, const std::vector<Initializer>& initializers, Tensors inputs,
                const DimBindings& dims, int threads, std::int64_t packed_bytes)
      : library_(emit_library(std::vector<LibraryGraph>{{"", graph}}, {.prefix = "step",
                                                                       .targets = {"host"},
                                                                       .most = dims,
                                                                       .packed_bytes = packed_bytes,
                                                                       .initializers = initializers})),
        inputs_(std::move(inputs)),
        pool_(threads),
        workers_(workers_of(pool_)) {
    std::vector<std::string> objects;
    for (const LibraryFile& object : library_.objects) objects.push_back(object.bytes);
    code_ = std::make_unique<codegen::LoadedCode>(objects);
    for (const auto& [name, size] : dims) call_.push_back(size);  // in the order of the library
    std::vector<std::int64_t> pack = call_;
    states_ = initial_values(graph, initializers, 1, dims);
    for (const ir::ValueId id : graph.arguments()) {
      const ir::Node& node = graph[id];
      if (const auto input = inputs_.find(node.name); input != inputs_.end())
        add(input->second.data());
      else
        pointers_.push_back(states_.at(node.name).data());
    }
    packed_ = HostTensor(u8, {number_in_header("#define STEP_PACK_BYTES")});
    if (packed_.bytes() > 0) add(packed_.data());
    add(static_cast<const void*>(pointers_.data()));
    for (const ir::Output& output : graph.outputs) {
      const ir::Node& node = graph[output.value];
      outputs_.push_back(HostTensor(node.type.dtype, node.type.shape.evaluate(dims)));
      add(outputs_.back().data());
    }
    // Registers of arguments that the function does not have are ignored.
    using Init = std::int32_t (*)(void*, void*, void*, std::uint64_t);
    check(address<Init>(library_.init)(instance_, nullptr, nullptr, 1));
    const std::int64_t bytes =
        address<std::int64_t (*)(void*, std::int32_t)>("step_workspace_bytes")(instance_, workers_.count);
    workspace_ = HostTensor(u8, {bytes});
    add(workspace_.data());
    call_.push_back(bytes);
    add(threads > 1 ? &workers_ : nullptr);
    if (packed_.bytes() > 0) {
      for (const void* pointer : std::initializer_list<const void*>{static_cast<const void*>(pointers_.data()),
                                                                    packed_.data(), workspace_.data()})
        pack.push_back(reinterpret_cast<std::intptr_t>(pointer));
      pack.insert(pack.end(), {bytes, reinterpret_cast<std::intptr_t>(&workers_)});
      check(address<std::int32_t (*)(void*, void*)>("step_pack_run")(instance_, pack.data()));
    }
    run_ = address<std::int32_t (*)(void*, void*)>("step_run");
  }

  void run() { check(run_(instance_, call_.data())); }
  const EmittedLibrary& files() const { return library_; }

 private:
  template <class F>
  F address(const std::string& name) {
    return reinterpret_cast<F>(code_->addresses({name})[0]);
  }
  /// Returns the number after a text of the header, or 0 without that text.
  std::int64_t number_in_header(const std::string& before) const {
    const std::string& header = library_.header.bytes;
    const std::size_t at = header.find(before);
    return at == std::string::npos ? 0 : std::stoll(header.substr(header.find_first_of("0123456789", at)));
  }
  void add(const void* pointer) { call_.push_back(reinterpret_cast<std::intptr_t>(pointer)); }
  void check(std::int32_t error) {
    if (error != 0) throw InternalError(address<const char* (*)(std::int32_t)>("step_message")(error));
  }

  EmittedLibrary library_;
  Tensors inputs_, states_;
  ThreadPool pool_;
  Workers workers_;
  std::unique_ptr<codegen::LoadedCode> code_;
  std::vector<HostTensor> outputs_;
  HostTensor workspace_, packed_;
  std::vector<void*> pointers_;
  std::vector<std::int64_t> call_;
  std::int32_t instance_[2] = {};
  std::int32_t (*run_)(void*, void*) = nullptr;
};

void measure(const std::string& name, int rounds, int threads, std::int64_t packed_bytes) {
  bench::StepCase step = bench::make_step_case(name);
  const ir::Graph graph = step.trains ? training_step(step.forward, "loss", AdamW{.lr = 1e-4}) : step.forward;
  Executable jit = compile(graph, {.threads = threads, .own_threads = true});
  jit.parameters().set(initial_values(graph, step.initializers, 1));
  const DimBindings bound = jit.bind(step.inputs);
  DimBindings dims;
  for (const std::string& dim : ir::unbound_dims(graph, {})) dims[dim] = bound.at(dim);
  LinkedLibrary library(graph, step.initializers, step.inputs, dims, threads, packed_bytes);
  const double first = seconds([&] { library.run(); });
  Tensors results;
  jit.run(step.inputs, results);
  std::vector<double> of_jit, of_library, ratios;
  for (int round = 0; round < rounds; ++round) {
    of_jit.push_back(seconds([&] { jit.run(step.inputs, results); }));
    of_library.push_back(seconds([&] { library.run(); }));
    ratios.push_back(of_library.back() / of_jit.back());
  }
  std::size_t code = 0, interface = 0;
  for (const LibraryFile& object : library.files().objects)
    (object.name == "step.o" ? interface : code) += object.bytes.size();
  fmt::print("{:<14} {:>9.3f} ms {:>9.3f} ms {:>7.3f} {:>9} KiB {:>7} KiB {:>9.3f} ms\n", name, 1e3 * median(of_jit),
             1e3 * median(of_library), median(ratios), code >> 10, interface >> 10, 1e3 * first);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15, threads = 2;
  std::int64_t packed_bytes = 0;
  std::vector<std::string> steps;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--rounds" && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (argument == "--threads" && i + 1 < argc)
      threads = std::atoi(argv[++i]);
    else if (argument == "--packed-weights")
      packed_bytes = lathe::LowerOptions{}.packed_bytes;
    else
      steps.push_back(argument);
  }
  if (steps.empty()) steps = {"gpt2"};
  fmt::print("{:<14} {:>12} {:>12} {:>7} {:>13} {:>11} {:>12}\n", "step", "in process", "library", "ratio", "code",
             "interface", "first run");
  for (const std::string& step : steps) measure(step, rounds, threads, packed_bytes);
}
