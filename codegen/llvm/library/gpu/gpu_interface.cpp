#include "codegen/llvm/library/gpu/gpu_interface.h"

#include <string_view>

#include "codegen/llvm/library/driver_emitter.h"
#include "codegen/llvm/library/gpu/driver_calls.h"
#include "codegen/llvm/library/gpu/gpu_driver.h"
#include "codegen/llvm/library/gpu/gpu_loader.h"
#include "codegen/llvm/library/interface_emitter.h"

namespace lathe::codegen {

namespace {

constexpr std::int64_t attribute_major = 75, attribute_minor = 76;  // of cuda.h

/// Errors of the driver with a name. Libraries return their numbers, negated.
struct DriverError {
  int code;
  std::string_view name;
};
constexpr DriverError driver_errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {3, "CUDA_ERROR_NOT_INITIALIZED: call cuInit first"},
    {4, "CUDA_ERROR_DEINITIALIZED"},
    {100, "CUDA_ERROR_NO_DEVICE"},
    {101, "CUDA_ERROR_INVALID_DEVICE"},
    {200, "CUDA_ERROR_INVALID_IMAGE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT: no context is current in this thread"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {218, "CUDA_ERROR_INVALID_PTX"},
    {400, "CUDA_ERROR_INVALID_HANDLE: is the stream of the current context?"},
    {500, "CUDA_ERROR_NOT_FOUND"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS: is the memory of the call device memory, and large enough?"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {999, "CUDA_ERROR_UNKNOWN"},
};

class GpuInterface final : public InterfaceEmitter {
 public:
  using InterfaceEmitter::InterfaceEmitter;

 private:
  bool has_constants() const { return !library_.weights.empty(); }
  std::vector<llvm::Type*> machine_types() override {
    return std::vector<llvm::Type*>(has_constants() ? 2 : 1, ptr());
  }
  Value* choose_level(llvm::Function* init) override;
  void prepare(llvm::Function* init, Value* level) override;
  Value* workers(const LibraryEntry&, Value*) override { return number(1); }
  WorkspaceSize workspace_size(const LibraryProgram& program) const override { return gpu_workspace_size(program); }
  void emit_run(const LibraryEntry& entry) override;
  void emit_rest() override;
  Value* other_message(Value* error) override;

  void emit_copy_states();
  void emit_release();
};

/// Returns the last level whose kernels the GPU of the current context runs.
llvm::Value* GpuInterface::choose_level(llvm::Function* init) {
  Value* functions = init->getArg(1);
  require(b_.CreateIsNotNull(functions), returning(LibraryError::no_driver));
  if (has_constants()) {
    Value* start = b_.CreatePtrToInt(init->getArg(2), i64());
    Value* is_aligned = b_.CreateICmpEQ(b_.CreateAnd(start, number(15)), number(0));
    require(b_.CreateAnd(b_.CreateICmpNE(start, number(0)), is_aligned), returning(LibraryError::no_constants));
  }
  llvm::AllocaInst *device = b_.CreateAlloca(i32(), nullptr, "device"),
                   *value = b_.CreateAlloca(i32(), nullptr, "value");
  return_unless_none(call_driver(b_, functions, DriverFunction::context_device, {device}));
  const auto attribute = [&](std::int64_t which) {
    return_unless_none(call_driver(b_, functions, DriverFunction::device_attribute,
                                   {value, number32(which), b_.CreateLoad(i32(), device)}));
    return b_.CreateLoad(i32(), value);
  };
  Value* major = attribute(attribute_major);
  Value* minor = attribute(attribute_minor);
  Value* capability = b_.CreateAdd(b_.CreateMul(major, number32(10)), minor);
  Value* level = number32(-1);
  for (std::size_t l = 0; l < library_.levels.size(); ++l) {
    const LibraryGpu& gpu = *library_.levels[l].gpu;
    // A cubin runs on GPUs of the same major version that are not older.
    Value* runs = gpu.is_exact ? b_.CreateICmpEQ(capability, number32(gpu.capability))
                               : b_.CreateAnd(b_.CreateICmpEQ(major, number32(gpu.capability / 10)),
                                              b_.CreateICmpSGE(capability, number32(gpu.capability)));
    level = b_.CreateSelect(runs, number32(static_cast<std::int64_t>(l)), level);
  }
  require(b_.CreateICmpSGE(level, number32(0)), returning(LibraryError::no_level));
  return level;
}

/// Loads the kernels, and copies constants to the device.
void GpuInterface::prepare(llvm::Function* init, Value* level) {
  Value *instance = init->getArg(0), *functions = init->getArg(1);
  b_.CreateStore(functions, word(instance, GpuInstanceLayout::driver));
  if (has_constants()) {
    auto* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
    Value* weights = module_.getOrInsertGlobal(library_.prefix + "_weights", b_.getInt8Ty());
    b_.CreateStore(init->getArg(2), word(instance, GpuInstanceLayout::constants));
    return_unless_none(call_driver(b_, functions, DriverFunction::copy,
                                   {b_.CreatePtrToInt(init->getArg(2), i64()), b_.CreatePtrToInt(weights, i64()),
                                    number(std::ssize(library_.weights)), none}));
    return_unless_none(call_driver(b_, functions, DriverFunction::synchronize, {none}));
  }
  llvm::Function* load =
      llvm::Function::Create(llvm::FunctionType::get(i32(), {i32(), ptr()}, false),
                             llvm::GlobalValue::InternalLinkage, library_.prefix + "_load", module_);
  return_unless_none(b_.CreateCall(load, {level, instance}));
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  llvm::Function* const outer = function_;
  function_ = load;
  b_.SetInsertPoint(block("entry"));
  return_from_level(b_.CreateZExt(load->getArg(0), i64()), [&](std::size_t l) { return loader_symbol(library_, l); },
                    {load->getArg(1)});
  function_ = outer;
}

void GpuInterface::emit_run(const LibraryEntry& entry) {
  llvm::Function* enqueue = start_external(entry.name + "_enqueue", i32(), {ptr(), ptr()});
  return_unless_none(b_.CreateCall(check_of(entry), {enqueue->getArg(0), enqueue->getArg(1)}));
  return_from_level(level(enqueue->getArg(0), returning(LibraryError::not_initialised)),
                    [&](std::size_t l) { return driver_symbol(library_, l, entry); },
                    {enqueue->getArg(0), enqueue->getArg(1)});

  llvm::Function* wait = start_external(entry.name + "_wait", i32(), {ptr(), ptr()});
  Value* of = level(wait->getArg(0), returning(LibraryError::not_initialised));
  require(b_.CreateIsNotNull(wait->getArg(1)), returning(LibraryError::no_call));
  return_from_level(of, [&](std::size_t l) { return waiter_symbol(library_, l, entry); },
                    {wait->getArg(0), wait->getArg(1)});

  llvm::Function* run = start_external(entry.name + "_run", i32(), {ptr(), ptr()});
  return_unless_none(b_.CreateCall(enqueue, {run->getArg(0), run->getArg(1)}));
  b_.CreateRet(b_.CreateCall(wait, {run->getArg(0), run->getArg(1)}));
}

void GpuInterface::emit_rest() {
  if (!library_.states.empty()) emit_copy_states();
  emit_release();
}

void GpuInterface::emit_copy_states() {
  llvm::SmallVector<llvm::Type*> types{ptr()};
  if (!library_.dims.empty()) types.push_back(ptr());
  types.append({ptr(), ptr(), ptr()});
  llvm::Function* copy = start_external("_copy_states", i32(), types);
  Value *instance = copy->getArg(0), *to = copy->arg_end() - 3, *from = copy->arg_end() - 2,
        *stream = copy->arg_end() - 1;
  level(instance, returning(LibraryError::not_initialised));
  if (!library_.dims.empty()) {
    require(b_.CreateIsNotNull(copy->getArg(1)), returning(LibraryError::no_call));
    return_unless_none(b_.CreateCall(checks_.of_dims(), {copy->getArg(1)}));
    bind_dims(copy->getArg(1));
  }
  for (Value* const states : {to, from}) require(b_.CreateIsNotNull(states), returning(LibraryError::no_states));
  std::vector<Value*> sizes;
  for (const LibraryTensor& state : library_.states)
    sizes.push_back(
        b_.CreateMul(size(state.elements), number(static_cast<std::int64_t>(size_in_bytes(state.dtype)))));
  Value* functions = driver_functions(b_, instance);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    when(b_.CreateICmpNE(sizes[i], number(0)), [&] {
      const auto slot = static_cast<std::int64_t>(i);
      Value *target = load_word(to, slot), *source = load_word(from, slot);
      Value* are_given = b_.CreateAnd(b_.CreateICmpNE(target, number(0)), b_.CreateICmpNE(source, number(0)));
      require(are_given, returning(library_.states[i].error));
      return_unless_none(call_driver(b_, functions, DriverFunction::copy, {target, source, sizes[i], stream}));
    });
  b_.CreateRet(call_driver(b_, functions, DriverFunction::synchronize, {stream}));
}

/// Unloads the kernels. The first error is returned, after all are unloaded.
void GpuInterface::emit_release() {
  llvm::Function* release = start_external("_release", i32(), {ptr()});
  Value* instance = release->getArg(0);
  Value* of = level(instance, returning(LibraryError::not_initialised));
  std::string counts;
  for (const LibraryLevel& level : library_.levels) {
    const auto count = static_cast<std::int64_t>(level.kernels.size());
    counts.append(reinterpret_cast<const char*>(&count), sizeof count);
  }
  llvm::AllocaInst* first = b_.CreateAlloca(i32(), nullptr, "first_error");
  b_.CreateStore(number32(0), first);
  b_.CreateStore(number32(0), half_word(instance, InstanceLayout::key));
  Value* count = load_word(bytes(counts, "kernel_counts", llvm::Align(8)), of);
  repeat(count, [&](Value* i) {
    Value* code = call_driver(b_, driver_functions(b_, instance), DriverFunction::unload_module,
                              {b_.CreateLoad(ptr(), word(word(instance, GpuInstanceLayout::modules), i))});
    Value* before = b_.CreateLoad(i32(), first);
    b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(before, number32(0)), code, before), first);
  });
  b_.CreateRet(b_.CreateLoad(i32(), first));
}

llvm::Value* GpuInterface::other_message(Value* error) {
  // One text, and the offset of the message in it: a table of pointers would need relocations.
  std::string all = "the library has no error with this number";
  all += '\0';
  const auto unnamed = std::ssize(all);
  all += "the CUDA driver returned an error: cuda.h has its name by its number, which is this one without the minus";
  all += '\0';
  Value* at = b_.CreateSelect(b_.CreateICmpSLT(error, number32(0)), number(unnamed), number(0));
  for (const DriverError& each : driver_errors) {
    at = b_.CreateSelect(b_.CreateICmpEQ(error, number32(-each.code)), number(std::ssize(all)), at);
    all += "the CUDA driver returned ";
    all += each.name;
    all += '\0';
  }
  return byte(bytes(all, "driver_messages"), at);
}

}  // namespace

void emit_gpu_interface(llvm::Module& module, const Library& library) { GpuInterface(module, library).emit(); }

}  // namespace lathe::codegen
