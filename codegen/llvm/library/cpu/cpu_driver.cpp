#include "codegen/llvm/library/cpu/cpu_driver.h"

#include <fmt/core.h>

#include <optional>

#include "codegen/llvm/library/cpu/launch_functions.h"
#include "codegen/llvm/library/driver_emitter.h"

namespace lathe::codegen {

namespace {

/// The words of a workspace after the arena: the records of all launches, then their buffers and dims.
struct RecordWords {
  explicit RecordWords(const LibraryProgram& program) {
    words = static_cast<std::int64_t>(program.launches.size()) * static_cast<int>(LaunchRecord::words);
    for (const LibraryLaunch& launch : program.launches) {
      buffers.push_back(words);
      words += static_cast<std::int64_t>(launch.buffers.size());
      dims.push_back(words);
      words += static_cast<std::int64_t>(launch.dims.size());
    }
  }
  std::vector<std::int64_t> buffers, dims;  ///< by launch
  std::int64_t words = 0;
};

class CpuDriver final : public DriverEmitter {
 public:
  CpuDriver(llvm::Module& module, const Library& library, std::size_t level, const LaunchFunctions& functions)
      : DriverEmitter(module, library, level), functions_(functions) {}

 private:
  using Value = llvm::Value;

  Value* start_driver(const std::string& symbol) override;
  Value* constant(const LibraryBuffer& buffer) override {
    return bytes(program_->constants[buffer.number], "constant", llvm::Align(cpu_workspace_alignment));
  }
  Value* embedded(const LibraryBuffer& buffer) override {
    return byte(module_.getOrInsertGlobal(library_.prefix + "_weights", b_.getInt8Ty()), number(buffer.offset));
  }
  Value* scratch(const LibraryBuffer& buffer) override {
    const std::int64_t start = aligned_on_cpu(program_->arena_bytes) + aligned_on_cpu(words_->words * word_bytes);
    return byte(workspace_, number(start + buffer.offset));
  }
  void begin() override;
  void leave() override { leave_float_environment(b_, control_); }
  void moved(const LibraryLoop& loop, int buffer) override;
  void run_group(const LibraryGroup& group) override;

  void write_record(std::size_t number_of);
  llvm::Constant* strides(const LibraryLaunch& launch);
  Value* record(std::int64_t launch) { return word(records_, launch * static_cast<int>(LaunchRecord::words)); }

  const LaunchFunctions& functions_;
  std::optional<RecordWords> words_;
  llvm::AllocaInst* control_ = nullptr;
  Value *records_ = nullptr, *workers_ = nullptr;
};

llvm::Value* CpuDriver::start_driver(const std::string& symbol) {
  words_.emplace(*program_);
  llvm::Function* driver = start_hidden(symbol, {ptr()}, {"call"});
  control_ = b_.CreateAlloca(b_.getInt32Ty(), b_.getInt32(2), "control");
  return driver->getArg(0);
}

void CpuDriver::begin() {
  workers_ = load_pointer(call_, CallLayout(library_, *entry_).workers());
  workers_->setName("workers");
  records_ = byte(workspace_, number(aligned_on_cpu(program_->arena_bytes)));
  records_->setName("records");
  enter_float_environment(b_, control_);
  for (std::size_t l = 0; l < program_->launches.size(); ++l) write_record(l);
}

/// Returns the bytes between the memory of two workers by buffer, as a constant; null if no buffer is scratch.
llvm::Constant* CpuDriver::strides(const LibraryLaunch& launch) {
  std::vector<std::int64_t> strides;
  bool has_scratch = false;
  for (const int buffer : launch.buffers) {
    const bool is_scratch = program_->buffers[buffer].kind == LibraryBuffer::Kind::scratch;
    strides.push_back(is_scratch ? aligned_on_cpu(program_->scratch_bytes) : 0);
    has_scratch = has_scratch || is_scratch;
  }
  if (!has_scratch) return llvm::ConstantPointerNull::get(b_.getPtrTy());
  return bytes(std::string(reinterpret_cast<const char*>(strides.data()), strides.size() * sizeof(std::int64_t)),
               "strides", llvm::Align(word_bytes));
}

void CpuDriver::write_record(std::size_t number_of) {
  const LibraryLaunch& launch = program_->launches[number_of];
  Value *one = record(static_cast<std::int64_t>(number_of)), *buffers = word(records_, words_->buffers[number_of]),
        *dims = word(records_, words_->dims[number_of]);
  const auto set = [&](LaunchRecord which, Value* value) {
    b_.CreateStore(value, word(one, static_cast<int>(which)));
  };
  one->setName(fmt::format("launch{}", number_of));
  const std::string symbol = kernel_symbol(library_, level_, launch.kernel);
  auto* run_type = llvm::FunctionType::get(b_.getVoidTy(), {ptr(), ptr(), i64(), i64(), ptr()}, false);
  auto* extent_type = llvm::FunctionType::get(i64(), {ptr()}, false);
  set(LaunchRecord::run, module_.getOrInsertFunction(symbol + "_run", run_type).getCallee());
  set(LaunchRecord::buffers, buffers);
  set(LaunchRecord::dims, dims);
  set(LaunchRecord::strides, strides(launch));
  set(LaunchRecord::count, number(static_cast<std::int64_t>(launch.buffers.size())));
  for (std::size_t i = 0; i < launch.buffers.size(); ++i)
    b_.CreateStore(where_[launch.buffers[i]], word(buffers, static_cast<std::int64_t>(i)));
  for (std::size_t i = 0; i < launch.dims.size(); ++i)
    b_.CreateStore(size(launch.dims[i]), word(dims, static_cast<std::int64_t>(i)));
  b_.CreateCall(functions_.prepare(), {one, module_.getOrInsertFunction(symbol + "_extent", extent_type).getCallee(),
                                       is_run(launch), size(launch.work), size(launch.bytes)});
}

/// Updates all records that have the slice.
void CpuDriver::moved(const LibraryLoop& loop, int buffer) {
  for (int l = loop.first; l < loop.end; ++l)
    for (std::size_t i = 0; i < program_->launches[l].buffers.size(); ++i)
      if (program_->launches[l].buffers[i] == buffer)
        b_.CreateStore(where_[buffer], word(records_, words_->buffers[l] + static_cast<std::int64_t>(i)));
}

void CpuDriver::run_group(const LibraryGroup& group) {
  const LibraryLaunch& last = program_->launches[group.last];
  Value* status = b_.CreateCall(functions_.run_group(), {record(group.first), number(group.last - group.first + 1),
                                                         b_.getInt1(group.are_parts), workers_});
  if (last.errors.empty()) return;
  fail_unless_none(status, [&] {
    const std::vector<std::int32_t> errors(last.errors.begin(), last.errors.end());
    llvm::Constant* table =
        bytes(std::string(reinterpret_cast<const char*>(errors.data()), errors.size() * sizeof(std::int32_t)),
              "errors", llvm::Align(alignof(std::int32_t)));
    return b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), table, b_.CreateSub(status, number(1))));
  });
}

}  // namespace

std::string kernel_symbol(const Library& library, std::size_t level, int kernel) {
  return fmt::format("{}_{}_kernel{}", library.prefix, library.levels[level].name, kernel);
}

WorkspaceSize cpu_workspace_size(const LibraryProgram& program) {
  return {aligned_on_cpu(program.arena_bytes) + aligned_on_cpu(RecordWords(program).words * word_bytes) +
              cpu_workspace_alignment,
          aligned_on_cpu(program.scratch_bytes)};
}

void emit_cpu_drivers(llvm::Module& module, const Library& library, std::size_t level) {
  const LaunchFunctions functions(module, library, fmt::format("{}_{}", library.prefix, library.levels[level].name));
  CpuDriver emitter(module, library, level, functions);
  for (const LibraryEntry& entry : library.entries) emitter.emit(entry);
}

}  // namespace lathe::codegen
