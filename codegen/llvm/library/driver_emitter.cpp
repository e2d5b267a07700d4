#include "codegen/llvm/library/driver_emitter.h"

#include <fmt/core.h>

#include "codegen/llvm/library/workspace_layout.h"

namespace lathe::codegen {

llvm::Function* DriverEmitter::start_hidden(const std::string& symbol, llvm::ArrayRef<llvm::Type*> arguments,
                                            std::initializer_list<const char*> names) {
  llvm::Function* f = start(symbol, b_.getInt32Ty(), arguments, llvm::GlobalValue::ExternalLinkage, names);
  f->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return f;
}

void DriverEmitter::emit(const LibraryEntry& entry) {
  entry_ = &entry;
  program_ = &entry.programs[level_];
  open_.clear();
  call_ = start_driver(driver_symbol(library_, level_, entry));
  llvm::Function* driver = function_;
  const CallLayout layout(library_, entry);
  bind_dims(word(call_, layout.dims));
  const std::int64_t alignment = library_.is_for_gpus() ? gpu_workspace_alignment : cpu_workspace_alignment;
  Value* given = b_.CreatePtrToInt(load_pointer(call_, layout.workspace), i64());
  given = b_.CreateAnd(b_.CreateAdd(given, number(alignment - 1)), number(-alignment));
  workspace_ = b_.CreateIntToPtr(given, ptr(), "workspace");
  point_tensors();
  trips_.clear();
  for (const LibraryLoop& loop : program_->loops) trips_.push_back(size(loop.trips));
  for (const LibraryBuffer& buffer : program_->buffers)
    if (buffer.kind == LibraryBuffer::Kind::slice) size(buffer.stride);  // here, so that all loops can use it
  fail_ = llvm::BasicBlock::Create(module_.getContext(), "fail");
  failure_ = llvm::PHINode::Create(b_.getInt32Ty(), 0, "failure", fail_);
  begin();
  for (const LibraryGroup& group : program_->groups) {
    for (int l = 0; l < static_cast<int>(program_->loops.size()); ++l)
      if (program_->loops[l].first == group.first) begin_loop(l);
    run_group(group);
    while (!open_.empty() && program_->loops[open_.back().number].end == group.last + 1) end_loop();
  }
  leave();
  b_.CreateRet(success());
  if (failure_->getNumIncomingValues() == 0) {
    delete fail_;
    return;
  }
  fail_->insertInto(driver);
  b_.SetInsertPoint(fail_);
  leave();
  b_.CreateRet(failure_);
}

/// Computes where each buffer starts, except slices.
void DriverEmitter::point_tensors() {
  const CallLayout layout(library_, *entry_);
  where_.assign(program_->buffers.size(), nullptr);
  for (std::size_t i = 0; i < where_.size(); ++i) {
    const LibraryBuffer& buffer = program_->buffers[i];
    switch (buffer.kind) {
      case LibraryBuffer::Kind::tensor:
        where_[i] = byte(memory_of(entry_->tensors[buffer.number], call_, layout), number(buffer.offset));
        break;
      case LibraryBuffer::Kind::constant: where_[i] = constant(buffer); break;
      case LibraryBuffer::Kind::arena: where_[i] = byte(workspace_, number(buffer.offset)); break;
      case LibraryBuffer::Kind::scratch: where_[i] = scratch(buffer); break;
      case LibraryBuffer::Kind::embedded: where_[i] = embedded(buffer); break;
      case LibraryBuffer::Kind::slice:
      case LibraryBuffer::Kind::unused: where_[i] = llvm::ConstantPointerNull::get(b_.getPtrTy()); break;
    }
    if (llvm::isa<llvm::Instruction>(where_[i])) where_[i]->setName(buffer.name);
  }
}

llvm::Value* DriverEmitter::is_run(const LibraryLaunch& launch) {
  Value* runs = launch.written.empty() ? b_.getTrue() : b_.getFalse();
  for (const LibrarySize& elements : launch.written)
    runs = b_.CreateOr(runs, b_.CreateICmpSGT(size(elements), number(0)));
  if (!launch.condition) return runs;
  Value *value = size(launch.condition->size), *limit = number(launch.condition->limit);
  return b_.CreateAnd(runs,
                      launch.condition->is_below ? b_.CreateICmpSLT(value, limit) : b_.CreateICmpSGE(value, limit));
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

/// Moves the slices of a loop to their places in an iteration.
void DriverEmitter::point_slices(int loop, Value* iteration) {
  for (std::size_t b = 0; b < where_.size(); ++b) {
    const LibraryBuffer& slice = program_->buffers[b];
    if (slice.kind != LibraryBuffer::Kind::slice || slice.loop != loop) continue;
    Value* part = slice.is_reversed ? b_.CreateSub(b_.CreateSub(trips_[loop], number(1)), iteration) : iteration;
    where_[b] = byte(where_[slice.of], b_.CreateMul(part, size(slice.stride)));
    moved(program_->loops[loop], static_cast<int>(b));
  }
}

void DriverEmitter::fail_unless_none(Value* status, llvm::function_ref<Value*()> error_of) {
  llvm::BasicBlock *failed = block("failed"), *next = block("next");
  auto* none = llvm::ConstantInt::get(status->getType(), 0);
  b_.CreateCondBr(b_.CreateICmpEQ(status, none), next, failed);
  b_.SetInsertPoint(failed);
  Value* code = error_of();
  failure_->addIncoming(code, b_.GetInsertBlock());
  b_.CreateBr(fail_);
  b_.SetInsertPoint(next);
}

std::string driver_symbol(const Library& library, std::size_t level, const LibraryEntry& entry) {
  return fmt::format("{}{}_on_{}", library.prefix, entry.name, library.levels[level].name);
}

}  // namespace lathe::codegen
