#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/llvm/loader.h"
#include "runtime/emit_library.h"

/// Runs libraries of emit_library() in this process, through their C interface.
namespace lathe::test {

/// A tensor of the interface, as a library describes it.
struct DescribedTensor {
  std::string name, member;
  DType dtype = f32;
  Shape shape;
};

struct DescribedFunction {
  std::string name;
  std::vector<DescribedTensor> inputs, outputs;
};

/// lathe_workers of a library's header.
struct Workers {
  void (*parallel_for)(void* context, std::int64_t count, void (*task)(void*, std::int64_t, std::int32_t),
                       void* argument);
  void* context;
  std::int32_t count;
};
/// Returns workers that start `count` threads for each loop.
Workers thread_workers(std::int32_t count);

/// A library that is linked into this process, and the memory of its states.
class LibraryRunner {
 public:
  /// Emits a library and links it.
  LibraryRunner(const std::vector<LibraryGraph>& graphs, const LibraryOptions& options);

  /// Initialises the library and all states under these sizes. Throws UserError [library] with the message of an
  /// error.
  void init(const DimBindings& dims, std::uint64_t seed);
  /// Sets the states to these values: all states of the library, in any order.
  void set_states(const Tensors& states);
  const Tensors& states() const { return states_; }

  /// Runs a function with `workers` threads; 0: without workers. Sizes of the outputs follow from `dims`. All memory
  /// that the run has to write contains bytes 0xff before. Throws UserError [library] with the message of an error.
  Tensors run(const std::string& function, const Tensors& inputs, const DimBindings& dims, int workers = 0);

  const std::vector<DescribedFunction>& functions() const { return functions_; }
  const std::vector<DescribedTensor>& described_states() const { return described_states_; }
  const std::vector<std::string>& dims() const { return dims_; }
  const EmittedLibrary& files() const { return library_; }
  /// The address of a function of the library, such as "_run".
  void* address(const std::string& suffix) { return code_->addresses({prefix_ + suffix})[0]; }
  void* init_address() { return code_->addresses({library_.init})[0]; }

 private:
  void read_description();
  void throw_error(std::int32_t error);
  std::vector<std::int64_t> dim_words(const DimBindings& dims) const;
  std::vector<void*> state_pointers();

  std::string prefix_;
  EmittedLibrary library_;
  std::unique_ptr<codegen::LoadedCode> code_;
  std::vector<std::string> dims_;
  std::vector<DescribedTensor> described_states_;
  std::vector<DescribedFunction> functions_;
  std::int32_t instance_[2] = {};
  Tensors states_;
};

}  // namespace lathe::test
