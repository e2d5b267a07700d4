#include "codegen/llvm/emit/statement_emitter.h"

#include <fmt/core.h>
#include <llvm/IR/Function.h>

#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::codegen {

using kernel::BufferInfo;
using kernel::Instruction;
using kernel::LoopKind;
using kernel::none;
using kernel::Opcode;
using kernel::ValueId;

void StatementEmitter::start(llvm::Function* function, Arguments arguments) {
  function_ = function;
  arguments_ = std::move(arguments);
  buffers_ = arguments_.buffers;
  buffers_.resize(kernel_.buffers.size(), nullptr);
  vars_.assign(kernel_.vars.size(), nullptr);
  bind_values();
}

llvm::Value* StatementEmitter::value(ValueId id) const {
  LATHE_ASSERT(id != none && values_[id]);
  return values_[id];
}

void StatementEmitter::when(Value* condition, llvm::function_ref<void()> then) {
  auto* inside = llvm::BasicBlock::Create(b_.getContext(), "then", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  then();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void StatementEmitter::block(const kernel::Block& statements) {
  for (const kernel::Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
}

void StatementEmitter::bind_values() {
  values_.assign(kernel_.values.size(), nullptr);
  for (std::size_t i = 0; i < kernel_.values.size(); ++i) {
    const Instruction& in = kernel_.values[i];
    if (in.op == Opcode::constant) values_[i] = scalars_.constant(in);
    if (in.op == Opcode::dim) values_[i] = arguments_.dims[in.integer];
  }
}

void StatementEmitter::demand(ValueId value) {
  for (const ValueId id : kernel::with_needs(kernel_, value))
    if (!values_[id]) values_[id] = compute(info(id));
}

llvm::Value* StatementEmitter::trip_count(const kernel::Loop& loop) {
  for (const ValueId bound : {loop.lo, loop.hi, loop.step}) demand(bound);
  Value *lo = value(loop.lo), *hi = value(loop.hi), *step = value(loop.step);
  Value* last = b_.CreateSub(b_.CreateSub(hi, lo), b_.getInt64(1));
  Value* one_less = scalars_.apply(ScalarOp::div, i64, {last, step});
  return b_.CreateSelect(b_.CreateICmpSLT(lo, hi), b_.CreateAdd(one_less, b_.getInt64(1)), b_.getInt64(0));
}

void StatementEmitter::statement(const kernel::Compute& s) { values_[s.value] = compute(info(s.value)); }

MemoryAccess StatementEmitter::access(kernel::BufferId buffer, int lanes, ValueId mask, int alignment) const {
  return {buffers_[buffer], kernel_.buffers[buffer].dtype, lanes, mask == none ? nullptr : value(mask), alignment};
}

llvm::Value* StatementEmitter::compute(const Instruction& in) {
  llvm::SmallVector<Value*, 4> args;
  for (const ValueId arg : in.args) args.push_back(value(arg));
  switch (in.op) {
    case Opcode::constant:
    case Opcode::dim:
    case Opcode::loop_index: break;
    case Opcode::scalar: {
      const DType operand = info(in.args.back()).type.scalar;
      if (in.scalar_op == ScalarOp::cast) return scalars_.cast(args[0], operand, in.type.scalar);
      return scalars_.apply(in.scalar_op, operand, args);
    }
    case Opcode::fma: return scalars_.fma(args[0], args[1], args[2]);
    case Opcode::broadcast: return b_.CreateVectorSplat(static_cast<unsigned>(in.type.lanes), args[0]);
    case Opcode::ramp: return memory_.ramp(args[0], args[1], in.type.lanes);
    case Opcode::reduce: return scalars_.reduce(in.scalar_op, in.type.scalar, args[0]);
    case Opcode::extract: return b_.CreateExtractElement(args[0], static_cast<std::uint64_t>(in.integer));
    case Opcode::shuffle: return shuffle(in, args[0], args[1]);
    case Opcode::load: return memory_.load(access(in.buffer, in.type.lanes, in.mask, in.alignment), args[0]);
    case Opcode::load_strided:
      return memory_.load_strided(access(in.buffer, in.type.lanes, in.mask, 0), args[0], args[1]);
    case Opcode::gather: return memory_.gather(access(in.buffer, in.type.lanes, in.mask, 0), args[0]);
    case Opcode::get: return b_.CreateLoad(scalars_.type(in.type.scalar, in.type.lanes), vars_[in.integer]);
    case Opcode::intrinsic: return hook_of(kernel_, in).emit(in, *this);
  }
  throw InternalError("a value that no statement computes");
}

llvm::Value* StatementEmitter::shuffle(const Instruction& in, Value* a, Value* b) {
  if (a->getType()->isVectorTy()) return b_.CreateShuffleVector(a, b, in.lanes);
  Value* result = llvm::PoisonValue::get(scalars_.type(in.type.scalar, in.type.lanes));
  for (std::size_t i = 0; i < in.lanes.size(); ++i)
    result = b_.CreateInsertElement(result, in.lanes[i] == 0 ? a : b, i);
  return result;
}

void StatementEmitter::statement(const kernel::Store& s) {
  const MemoryAccess to = access(s.buffer, info(s.value).type.lanes, s.mask, s.alignment);
  switch (s.kind) {
    case kernel::StoreKind::contiguous:
      streams_ = streams_ || s.streams;
      return s.streams ? memory_.stream(to, value(s.index), value(s.value))
                       : memory_.store(to, value(s.index), value(s.value));
    case kernel::StoreKind::strided:
      return memory_.store_strided(to, value(s.index), value(s.stride), value(s.value));
    case kernel::StoreKind::scatter: return memory_.scatter(to, value(s.index), value(s.value));
  }
}

void StatementEmitter::statement(const kernel::Prefetch& s) {
  const bool to_write = kernel_.buffers[s.buffer].access != kernel::Access::read;
  memory_.prefetch(access(s.buffer, 1, none, 0), value(s.index), to_write);
}

/// Allocates a stack slot in the entry block: one per variable, even if a loop declares it.
llvm::AllocaInst* StatementEmitter::slot(llvm::Type* type, const std::string& name) {
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  return b_.CreateAlloca(type, nullptr, name);
}

void StatementEmitter::statement(const kernel::SetVar& s) {
  Value*& var = vars_[s.var];
  const kernel::Type type = kernel_.vars[s.var].type;
  if (!var) var = slot(scalars_.type(type.scalar, type.lanes), fmt::format("v{}", s.var));
  b_.CreateStore(value(s.value), var);
}

void StatementEmitter::statement(const kernel::Alloc& s) {
  const BufferInfo& buffer = kernel_.buffers[s.buffer];
  if (buffers_[s.buffer]) return;
  llvm::Type* type = buffer.dtype == boolean ? b_.getInt8Ty() : scalars_.type(buffer.dtype);
  auto* memory = slot(llvm::ArrayType::get(type, static_cast<std::uint64_t>(buffer.count)), buffer.name);
  memory->setAlignment(llvm::Align(64));
  buffers_[s.buffer] = memory;
}

void StatementEmitter::of_a_gpu(std::string_view what) const {
  throw InternalError(fmt::format("kernel {}: {} in a kernel for the CPU", kernel_.name, what));
}

void StatementEmitter::statement(const kernel::Barrier&) { of_a_gpu("a barrier"); }
void StatementEmitter::statement(const kernel::IntrinsicRegion& s) { of_a_gpu(fmt::format("a {}", s.record->name)); }

void StatementEmitter::statement(const kernel::Check& s) {
  when(b_.CreateNot(value(s.condition)), [&] {
    Value* old = b_.CreateLoad(b_.getInt64Ty(), arguments_.status);
    Value* code = b_.getInt64(static_cast<std::uint64_t>(s.code));
    b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(old, b_.getInt64(0)), code, old), arguments_.status);
  });
}

void StatementEmitter::statement(const kernel::Branch& s) {
  llvm::LLVMContext& context = b_.getContext();
  auto* then = llvm::BasicBlock::Create(context, "then", function_);
  auto* otherwise = llvm::BasicBlock::Create(context, "else", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateCondBr(value(s.condition), then, otherwise);
  b_.SetInsertPoint(then);
  block(s.then_block);
  b_.CreateBr(after);
  b_.SetInsertPoint(otherwise);
  block(s.else_block);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void StatementEmitter::statement(const kernel::Loop& s) {
  if (s.kind == LoopKind::unroll) return unrolled(s);
  Value *lo = value(s.lo), *step = value(s.step), *hi = value(s.hi);
  if (s.kind == LoopKind::parallel) {
    // Iterations begin..end of the loop.
    hi = b_.CreateAdd(lo, b_.CreateMul(arguments_.end, step));
    lo = b_.CreateAdd(lo, b_.CreateMul(arguments_.begin, step));
  }
  llvm::LLVMContext& context = b_.getContext();
  auto* body = llvm::BasicBlock::Create(context, "loop", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSLT(lo, hi), body, after);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2, "i");
  index->addIncoming(lo, before);
  values_[s.index] = index;
  block(s.body);
  Value* next = b_.CreateNSWAdd(index, step);
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, hi), body, after);
  b_.SetInsertPoint(after);
}

void StatementEmitter::unrolled(const kernel::Loop& s) {
  const std::int64_t lo = info(s.lo).integer, hi = info(s.hi).integer, step = info(s.step).integer;
  for (std::int64_t i = lo; i < hi; i += step) {
    values_[s.index] = b_.getInt64(static_cast<std::uint64_t>(i));
    block(s.body);
  }
}

}  // namespace lathe::codegen
