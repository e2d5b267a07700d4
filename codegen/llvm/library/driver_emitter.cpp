#include "codegen/llvm/library/driver_emitter.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "codegen/llvm/library/launch_functions.h"

namespace lathe::codegen {

namespace {

constexpr std::int64_t alignment = 64, word_bytes = 8;

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

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

class DriverEmitter : public ModuleCode {
 public:
  DriverEmitter(llvm::Module& module, const Library& library, std::size_t level, const LaunchFunctions& functions)
      : ModuleCode(module, library), level_(level), functions_(functions) {}

  void emit(const LibraryEntry& entry);

 private:
  /// A loop of the program whose body is emitted.
  struct OpenLoop {
    int number;
    llvm::PHINode* iteration;
    llvm::BasicBlock *head, *after;
  };

  void point_tensors(Value* call, Value* workspace);
  void write_record(std::size_t number_of);
  llvm::Constant* strides(const LibraryLaunch& launch);
  void begin_loop(int number);
  void end_loop();
  void point_slices(int loop, Value* iteration);
  void run_group(const LibraryGroup& group, Value* workers);
  Value* record(std::int64_t launch) { return word(records_, launch * static_cast<int>(LaunchRecord::words)); }

  std::size_t level_;
  const LaunchFunctions& functions_;
  const LibraryEntry* entry_ = nullptr;
  const LibraryProgram* program_ = nullptr;
  std::optional<RecordWords> words_;
  Value* records_ = nullptr;
  std::vector<Value*> where_;  ///< by buffer; null before its loop for a slice
  std::vector<Value*> trips_;  ///< by loop
  std::vector<OpenLoop> open_;
  llvm::BasicBlock* fail_ = nullptr;
  llvm::PHINode* failure_ = nullptr;
};

void DriverEmitter::emit(const LibraryEntry& entry) {
  entry_ = &entry;
  program_ = &entry.programs[level_];
  words_.emplace(*program_);
  open_.clear();
  const CallLayout layout(library_, entry);
  llvm::Function* driver =
      start(driver_symbol(library_, level_, entry), b_.getInt32Ty(), {ptr()}, llvm::GlobalValue::ExternalLinkage);
  driver->setVisibility(llvm::GlobalValue::HiddenVisibility);
  Value* call = driver->getArg(0);
  call->setName("call");
  llvm::AllocaInst* control = b_.CreateAlloca(b_.getInt32Ty(), b_.getInt32(2), "control");
  bind_dims(word(call, layout.dims));
  Value* given = b_.CreatePtrToInt(load_pointer(call, layout.workspace), i64());
  given = b_.CreateAnd(b_.CreateAdd(given, number(alignment - 1)), number(-alignment));
  Value* workspace = b_.CreateIntToPtr(given, ptr(), "workspace");
  Value* workers = load_pointer(call, layout.workers());
  workers->setName("workers");
  records_ = byte(workspace, number(aligned(program_->arena_bytes)));
  records_->setName("records");
  point_tensors(call, workspace);
  trips_.clear();
  for (const LibraryLoop& loop : program_->loops) trips_.push_back(size(loop.trips));
  for (const LibraryBuffer& buffer : program_->buffers)
    if (buffer.kind == LibraryBuffer::Kind::slice) size(buffer.stride);  // here, so that all loops can use it
  enter_float_environment(b_, control);
  for (std::size_t l = 0; l < program_->launches.size(); ++l) write_record(l);

  fail_ = llvm::BasicBlock::Create(module_.getContext(), "fail");
  failure_ = llvm::PHINode::Create(b_.getInt32Ty(), 0, "failure", fail_);
  for (const LibraryGroup& group : program_->groups) {
    for (int l = 0; l < static_cast<int>(program_->loops.size()); ++l)
      if (program_->loops[l].first == group.first) begin_loop(l);
    run_group(group, workers);
    while (!open_.empty() && program_->loops[open_.back().number].end == group.last + 1) end_loop();
  }
  leave_float_environment(b_, control);
  b_.CreateRet(success());
  if (failure_->getNumIncomingValues() == 0) {
    delete fail_;
    return;
  }
  fail_->insertInto(driver);
  b_.SetInsertPoint(fail_);
  leave_float_environment(b_, control);
  b_.CreateRet(failure_);
}

/// Computes where each buffer starts, except slices.
void DriverEmitter::point_tensors(Value* call, Value* workspace) {
  const CallLayout layout(library_, *entry_);
  const std::int64_t scratch = aligned(program_->arena_bytes) + aligned(words_->words * word_bytes);
  where_.assign(program_->buffers.size(), nullptr);
  for (std::size_t i = 0; i < where_.size(); ++i) {
    const LibraryBuffer& buffer = program_->buffers[i];
    switch (buffer.kind) {
      case LibraryBuffer::Kind::tensor: where_[i] = memory_of(entry_->tensors[buffer.number], call, layout); break;
      case LibraryBuffer::Kind::constant:
        where_[i] = bytes(program_->constants[buffer.number], "constant", llvm::Align(alignment));
        break;
      case LibraryBuffer::Kind::arena: where_[i] = byte(workspace, number(buffer.offset)); break;
      case LibraryBuffer::Kind::scratch: where_[i] = byte(workspace, number(scratch + buffer.offset)); break;
      case LibraryBuffer::Kind::embedded:
        where_[i] =
            byte(module_.getOrInsertGlobal(library_.prefix + "_weights", b_.getInt8Ty()), number(buffer.offset));
        break;
      case LibraryBuffer::Kind::slice:
      case LibraryBuffer::Kind::unused: where_[i] = llvm::ConstantPointerNull::get(b_.getPtrTy()); break;
    }
    if (llvm::isa<llvm::Instruction>(where_[i])) where_[i]->setName(buffer.name);
  }
}

/// Returns the bytes between the memory of two workers by buffer, as a constant; null if no buffer is scratch.
llvm::Constant* DriverEmitter::strides(const LibraryLaunch& launch) {
  std::vector<std::int64_t> strides;
  bool has_scratch = false;
  for (const int buffer : launch.buffers) {
    const bool is_scratch = program_->buffers[buffer].kind == LibraryBuffer::Kind::scratch;
    strides.push_back(is_scratch ? aligned(program_->scratch_bytes) : 0);
    has_scratch = has_scratch || is_scratch;
  }
  if (!has_scratch) return llvm::ConstantPointerNull::get(b_.getPtrTy());
  return bytes(std::string(reinterpret_cast<const char*>(strides.data()), strides.size() * sizeof(std::int64_t)),
               "strides", llvm::Align(word_bytes));
}

void DriverEmitter::write_record(std::size_t number_of) {
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
  Value* is_nonempty = launch.written.empty() ? b_.getTrue() : b_.getFalse();
  for (const LibrarySize& elements : launch.written)
    is_nonempty = b_.CreateOr(is_nonempty, b_.CreateICmpSGT(size(elements), number(0)));
  b_.CreateCall(functions_.prepare(), {one, module_.getOrInsertFunction(symbol + "_extent", extent_type).getCallee(),
                                       is_nonempty, size(launch.work), size(launch.bytes)});
}

void DriverEmitter::begin_loop(int number_of) {
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = block("loop"), *body = block("iteration"),
                   *after = block("after_loop");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* iteration = b_.CreatePHI(i64(), 2, program_->loops[number_of].name);
  iteration->addIncoming(number(0), before);
  b_.CreateCondBr(b_.CreateICmpSLT(iteration, trips_[number_of]), body, after);
  b_.SetInsertPoint(body);
  open_.push_back({number_of, iteration, head, after});
  point_slices(number_of, iteration);
}

void DriverEmitter::end_loop() {
  const OpenLoop loop = open_.back();
  open_.pop_back();
  loop.iteration->addIncoming(b_.CreateAdd(loop.iteration, number(1)), b_.GetInsertBlock());
  b_.CreateBr(loop.head);
  b_.SetInsertPoint(loop.after);
}

/// Moves the slices of a loop to their places in an iteration, in all records that have them.
void DriverEmitter::point_slices(int loop, Value* iteration) {
  const LibraryLoop& bounds = program_->loops[loop];
  for (std::size_t b = 0; b < where_.size(); ++b) {
    const LibraryBuffer& slice = program_->buffers[b];
    if (slice.kind != LibraryBuffer::Kind::slice || slice.loop != loop) continue;
    Value* part = slice.is_reversed ? b_.CreateSub(b_.CreateSub(trips_[loop], number(1)), iteration) : iteration;
    where_[b] = byte(where_[slice.of], b_.CreateMul(part, size(slice.stride)));
    for (int l = bounds.first; l < bounds.end; ++l)
      for (std::size_t i = 0; i < program_->launches[l].buffers.size(); ++i)
        if (program_->launches[l].buffers[i] == static_cast<int>(b))
          b_.CreateStore(where_[b], word(records_, words_->buffers[l] + static_cast<std::int64_t>(i)));
  }
}

void DriverEmitter::run_group(const LibraryGroup& group, Value* workers) {
  const LibraryLaunch& last = program_->launches[group.last];
  Value* status = b_.CreateCall(functions_.run_group(), {record(group.first), number(group.last - group.first + 1),
                                                         b_.getInt1(group.are_parts), workers});
  if (last.errors.empty()) return;
  llvm::BasicBlock *failed = block("failed"), *next = block("next");
  b_.CreateCondBr(b_.CreateICmpEQ(status, number(0)), next, failed);
  b_.SetInsertPoint(failed);
  const std::vector<std::int32_t> errors(last.errors.begin(), last.errors.end());
  llvm::Constant* table =
      bytes(std::string(reinterpret_cast<const char*>(errors.data()), errors.size() * sizeof(std::int32_t)), "errors",
            llvm::Align(alignof(std::int32_t)));
  failure_->addIncoming(
      b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), table, b_.CreateSub(status, number(1)))), failed);
  b_.CreateBr(fail_);
  b_.SetInsertPoint(next);
}

}  // namespace

std::string kernel_symbol(const Library& library, std::size_t level, int kernel) {
  return fmt::format("{}_{}_kernel{}", library.prefix, library.levels[level].name, kernel);
}

std::string driver_symbol(const Library& library, std::size_t level, const LibraryEntry& entry) {
  return fmt::format("{}{}_on_{}", library.prefix, entry.name, library.levels[level].name);
}

WorkspaceSize workspace_size(const LibraryProgram& program) {
  return {aligned(program.arena_bytes) + aligned(RecordWords(program).words * word_bytes) + alignment,
          aligned(program.scratch_bytes)};
}

void emit_drivers(llvm::Module& module, const Library& library, std::size_t level) {
  const LaunchFunctions functions(module, library, fmt::format("{}_{}", library.prefix, library.levels[level].name));
  DriverEmitter emitter(module, library, level, functions);
  for (const LibraryEntry& entry : library.entries) emitter.emit(entry);
}

}  // namespace lathe::codegen
