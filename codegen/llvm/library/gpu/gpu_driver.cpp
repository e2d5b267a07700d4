#include "codegen/llvm/library/gpu/gpu_driver.h"

#include <algorithm>
#include <map>

#include "codegen/llvm/library/driver_emitter.h"
#include "codegen/llvm/library/gpu/driver_calls.h"
#include "codegen/llvm/library/gpu/gpu_launchers.h"

namespace lathe::codegen {

namespace {

/// Returns the number of status words of a launch: one if it has run-time checks, and that of the barrier of a kernel
/// of phases, whose status word comes before it. Other launches get the address of the first word, and do not write
/// it.
std::int64_t status_words(const LibraryLaunch& launch) {
  return launch.has_phases ? 2 : launch.errors.empty() ? 0 : 1;
}

/// Returns the number of status words of a program, which follow the arena.
std::int64_t status_words(const LibraryProgram& program) {
  std::int64_t words = 0;
  for (const LibraryLaunch& launch : program.launches) words += status_words(launch);
  return words;
}

class GpuDriver final : public DriverEmitter {
 public:
  using DriverEmitter::DriverEmitter;

 private:
  using Value = llvm::Value;

  Value* start_driver(const std::string& symbol) override;
  Value* constant(const LibraryBuffer& buffer) override { return embedded(buffer); }
  Value* embedded(const LibraryBuffer& buffer) override {
    return byte(load_pointer(function_->getArg(0), GpuInstanceLayout::constants), number(buffer.offset));
  }
  Value* scratch(const LibraryBuffer& buffer) override { return byte(workspace_, number(buffer.offset)); }
  void begin() override;
  void run_group(const LibraryGroup& group) override;

  void clear_statuses();
  Value* is_unaligned(const LibraryLaunch& launch);
  void launch(int kernel);

  Value *instance_ = nullptr, *stream_ = nullptr, *statuses_ = nullptr;
  llvm::AllocaInst* values_ = nullptr;  ///< arguments of the next launch
  std::int64_t status_ = 0;             ///< number of status words of the launches before
  std::map<int, Value*> is_unaligned_;  ///< by slice: it starts between multiples of 16 bytes in some iteration
};

llvm::Value* GpuDriver::start_driver(const std::string& symbol) {
  llvm::Function* driver = start_hidden(symbol, {ptr(), ptr()}, {"library", "call"});
  instance_ = driver->getArg(0);
  std::size_t most = 1;
  for (const LibraryLaunch& launch : program_->launches)
    most = std::max(most, launch.buffers.size() + launch.dims.size() + 1);
  values_ = b_.CreateAlloca(i64(), number(static_cast<std::int64_t>(most)), "values");
  return driver->getArg(1);
}

void GpuDriver::begin() {
  stream_ = load_pointer(call_, CallLayout(library_, *entry_).stream());
  stream_->setName("stream");
  statuses_ = byte(workspace_, number(aligned_on_gpu(program_->arena_bytes)));
  statuses_->setName("statuses");
  status_ = 0;
  is_unaligned_.clear();
  // Here, so that launches in loops can use the sizes.
  for (const LibraryLaunch& launch : program_->launches) {
    for (const LibrarySize& dim : launch.dims) size(dim);
    for (const LibrarySize& written : launch.written) size(written);
    for (const int slice : launch.unaligned_slices) {
      const LibraryBuffer& buffer = program_->buffers[slice];
      Value*& is = is_unaligned_[slice];
      if (is) continue;
      constexpr std::int64_t assumed = 16;
      Value* rest = b_.CreateAnd(size(buffer.stride), number(assumed - 1));
      is = b_.CreateAnd(b_.CreateICmpSGT(trips_[buffer.loop], number(1)), b_.CreateICmpNE(rest, number(0)));
    }
  }
  clear_statuses();
}

void GpuDriver::clear_statuses() {
  const std::int64_t words = status_words(*program_);
  if (words == 0) return;
  Value* code =
      call_driver(b_, driver_functions(b_, instance_), DriverFunction::fill,
                  {b_.CreatePtrToInt(statuses_, i64()), b_.getInt8(0), number(words * word_bytes), stream_});
  fail_unless_none(code, [&] { return code; });
}

llvm::Value* GpuDriver::is_unaligned(const LibraryLaunch& launch) {
  Value* any = b_.getFalse();
  for (const int slice : launch.unaligned_slices) any = b_.CreateOr(any, is_unaligned_.at(slice));
  return any;
}

void GpuDriver::launch(int kernel) {
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr(), ptr(), ptr()}, false);
  const auto launcher = module_.getOrInsertFunction(launcher_symbol(library_, level_, kernel), type);
  Value* code = b_.CreateCall(launcher, {instance_, stream_, values_});
  fail_unless_none(code, [&] { return code; });
}

void GpuDriver::run_group(const LibraryGroup& group) {
  const LibraryLaunch& one = program_->launches[group.first];
  std::int64_t at = 0;
  const auto pass = [&](Value* value) { b_.CreateStore(value, word(values_, at++)); };
  const std::int64_t words = status_words(one);
  Value* status = words == 0 ? statuses_ : word(statuses_, status_);
  status_ += words;
  when(is_run(one), [&] {
    for (const int buffer : one.buffers) pass(where_[buffer]);
    for (const LibrarySize& dim : one.dims) pass(size(dim));
    pass(status);
    if (one.unaligned_kernel < 0) return launch(one.kernel);
    Value* chosen = is_unaligned(one);
    when(chosen, [&] { launch(one.unaligned_kernel); });
    when(b_.CreateNot(chosen), [&] { launch(one.kernel); });
  });
}

/// Emits the functions that wait for the drivers of a level.
class Waiters : public ModuleCode {
 public:
  using ModuleCode::ModuleCode;

  void emit(const LibraryEntry& entry, std::size_t level) {
    const LibraryProgram& program = entry.programs[level];
    llvm::Function* waiter =
        start(waiter_symbol(library_, level, entry), i32(), {ptr(), ptr()}, llvm::GlobalValue::ExternalLinkage);
    waiter->setVisibility(llvm::GlobalValue::HiddenVisibility);
    const CallLayout layout(library_, entry);
    Value *functions = driver_functions(b_, waiter->getArg(0)), *call = waiter->getArg(1);
    Value* stream = load_pointer(call, layout.stream());
    const std::int64_t words = status_words(program);
    if (words == 0) {
      b_.CreateRet(call_driver(b_, functions, DriverFunction::synchronize, {stream}));
      return;
    }
    constexpr std::int64_t most_at_once = 64;  // on the stack
    llvm::AllocaInst* codes = b_.CreateAlloca(i64(), number(std::min(words, most_at_once)), "codes");
    Value* given = b_.CreateAdd(b_.CreatePtrToInt(load_pointer(call, layout.workspace), i64()),
                                number(gpu_workspace_alignment - 1));
    Value* statuses = b_.CreateAdd(b_.CreateAnd(given, number(-gpu_workspace_alignment)),
                                   number(aligned_on_gpu(program.arena_bytes)));
    const auto [first_of, errors] = tables(program);
    for (std::int64_t at = 0; at < words; at += most_at_once) {
      const std::int64_t count = std::min(words - at, most_at_once);
      return_unless_none(
          call_driver(b_, functions, DriverFunction::copy,
                      {b_.CreatePtrToInt(codes, i64()), b_.CreateAdd(statuses, number(at * word_bytes)),
                       number(count * word_bytes), stream}));
      return_unless_none(call_driver(b_, functions, DriverFunction::synchronize, {stream}));
      repeat(number(count), [&](Value* i) {
        Value* code = load_word(codes, i);
        Value* first = load_word(first_of, b_.CreateAdd(i, number(at)));
        Value* is_status = b_.CreateICmpSGE(first, number(0));
        when_returning(b_.CreateAnd(is_status, b_.CreateICmpNE(code, number(0))), [&] {
          Value* which = b_.CreateAdd(first, b_.CreateSub(code, number(1)));
          return b_.CreateLoad(i32(), b_.CreateGEP(i32(), errors, which));
        });
      });
    }
    b_.CreateRet(success());
  }

 private:
  /// Returns tables of the errors of all status words, and by word of where its errors start; -1 for barriers.
  std::pair<llvm::Constant*, llvm::Constant*> tables(const LibraryProgram& program) {
    std::string first_of, errors;
    std::int64_t count = 0;
    const std::int64_t barrier = -1;
    for (const LibraryLaunch& launch : program.launches) {
      const std::int64_t words = status_words(launch);
      if (words > 0) first_of.append(reinterpret_cast<const char*>(&count), sizeof count);
      if (words > 1) first_of.append(reinterpret_cast<const char*>(&barrier), sizeof barrier);
      for (const std::int32_t code : launch.errors) errors.append(reinterpret_cast<const char*>(&code), sizeof code);
      count += std::ssize(launch.errors);
    }
    return {bytes(first_of, "first_errors", llvm::Align(word_bytes)), bytes(errors, "errors", llvm::Align(4))};
  }

  void when_returning(Value* condition, llvm::function_ref<Value*()> result) {
    llvm::BasicBlock *failed = block("failed"), *next = block("next");
    b_.CreateCondBr(condition, failed, next);
    b_.SetInsertPoint(failed);
    b_.CreateRet(result());
    b_.SetInsertPoint(next);
  }
};

}  // namespace

std::string waiter_symbol(const Library& library, std::size_t level, const LibraryEntry& entry) {
  return driver_symbol(library, level, entry) + "_wait";
}

WorkspaceSize gpu_workspace_size(const LibraryProgram& program) {
  const std::int64_t words = std::max<std::int64_t>(1, status_words(program));
  return {aligned_on_gpu(program.arena_bytes) + words * word_bytes + gpu_workspace_alignment, 0};
}

void emit_gpu_drivers(llvm::Module& module, const Library& library, std::size_t level) {
  emit_launchers(module, library, level);
  GpuDriver driver(module, library, level);
  for (const LibraryEntry& entry : library.entries) driver.emit(entry);
  Waiters waiters(module, library);
  for (const LibraryEntry& entry : library.entries) waiters.emit(entry, level);
}

}  // namespace lathe::codegen
