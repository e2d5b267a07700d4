#include "codegen/llvm/emitter.h"

#include <fmt/core.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/intrinsics/hooks.h"
#include "codegen/llvm/math/scalar_ops.h"
#include "codegen/llvm/memory_ops.h"
#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::codegen {

using kernel::BufferInfo;
using kernel::Instruction;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::none;
using kernel::Opcode;
using kernel::ValueId;
using llvm::Value;

namespace {

class Emitter : KernelCode {
 public:
  Emitter(llvm::Module& module, const Kernel& kernel, const TargetCpu& target, std::string symbol)
      : module_(module),
        kernel_(kernel),
        target_(target),
        symbol_(std::move(symbol)),
        b_(module.getContext()),
        scalars_(b_, target),
        memory_(b_, scalars_) {}

  void run() {
    emit_body();
    emit_entry();
    emit_extent();
  }

 private:
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  const Instruction& info(ValueId id) const { return kernel_.values[at(id)]; }

  llvm::Function* create(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args,
                         bool external) {
    const auto linkage = external ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage;
    auto* function =
        llvm::Function::Create(llvm::FunctionType::get(result, args, false), linkage, symbol_ + name, module_);
    function->setDoesNotThrow();
    function->addFnAttr("target-cpu", target_.cpu);
    function->addFnAttr("target-features", target_.features);
    // Without these, LLVM splits 512-bit vectors on some CPUs.
    function->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
    function->addFnAttr("min-legal-vector-width", std::to_string(target_.vector_bits));
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    return function;
  }

  /// Emits the kernel as a function of plain arguments, so that each pointer can be noalias: (buffers..., dims...,
  /// begin, end, status).
  void emit_body() {
    const int buffers = kernel_.parameter_count();
    std::vector<llvm::Type*> types(at(buffers), b_.getPtrTy());
    types.insert(types.end(), kernel_.dims.size() + 2, b_.getInt64Ty());
    types.push_back(b_.getPtrTy());
    body_ = create("_body", b_.getVoidTy(), types, false);
    // Inlining into the entry would lose noalias.
    body_->addFnAttr(llvm::Attribute::NoInline);
    buffers_.assign(kernel_.buffers.size(), nullptr);
    for (int i = 0; i < buffers; ++i) {
      llvm::Argument* argument = body_->getArg(static_cast<unsigned>(i));
      const BufferInfo& buffer = kernel_.buffers[at(i)];
      argument->setName(buffer.name);
      argument->addAttr(llvm::Attribute::NoCapture);
      if (buffer.noalias) argument->addAttr(llvm::Attribute::NoAlias);
      if (buffer.noalias && buffer.access == kernel::Access::read) argument->addAttr(llvm::Attribute::ReadOnly);
      buffers_[at(i)] = argument;
    }
    auto* next = body_->arg_begin() + buffers;
    for (const std::string& dim : kernel_.dims) {
      next->setName(dim);
      dims_.push_back(&*next++);
    }
    begin_ = &*next++;
    end_ = &*next++;
    status_ = &*next;
    begin_->setName("begin");
    end_->setName("end");
    status_->setName("status");
    bind_values();
    vars_.assign(kernel_.vars.size(), nullptr);
    const std::vector<const IntrinsicHook*> hooks = hooks_of(kernel_, target_);
    for (const IntrinsicHook* hook : hooks)
      if (hook->enter) hook->enter(b_);
    if (kernel_.parallel_loop()) {
      block(kernel_.body);
    } else {
      when(b_.CreateICmpSLT(begin_, end_), [&] { block(kernel_.body); });
    }
    for (const IntrinsicHook* hook : hooks)
      if (hook->leave) hook->leave(b_);
    // Non-temporal stores are weakly ordered, so fence before returning.
    if (streams_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    b_.CreateRetVoid();
  }

  void bind_values() {
    values_.assign(kernel_.values.size(), nullptr);
    for (std::size_t i = 0; i < kernel_.values.size(); ++i) {
      const Instruction& in = kernel_.values[i];
      if (in.op == Opcode::constant) values_[i] = scalars_.constant(in);
      if (in.op == Opcode::dim) values_[i] = dims_[in.integer];
    }
  }

  Value* element(Value* array, llvm::Type* type, std::size_t index) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(type, array, index));
  }

  /// Emits void run(ptr buffers, ptr dims, i64 begin, i64 end, ptr status), which unpacks its arguments and calls the
  /// body.
  void emit_entry() {
    llvm::Type* ptr = b_.getPtrTy();
    llvm::Function* run = create("_run", b_.getVoidTy(), {ptr, ptr, b_.getInt64Ty(), b_.getInt64Ty(), ptr}, true);
    std::vector<Value*> args;
    for (int i = 0; i < kernel_.parameter_count(); ++i) args.push_back(element(run->getArg(0), ptr, at(i)));
    for (std::size_t i = 0; i < kernel_.dims.size(); ++i) args.push_back(element(run->getArg(1), b_.getInt64Ty(), i));
    for (unsigned i = 2; i < 5; ++i) args.push_back(run->getArg(i));
    b_.CreateCall(body_, args);
    b_.CreateRetVoid();
  }

  /// Emits i64 extent(ptr dims): the trip count of the parallel loop, computed from the dims.
  void emit_extent() {
    llvm::Function* function = create("_extent", b_.getInt64Ty(), {b_.getPtrTy()}, true);
    const kernel::Loop* loop = kernel_.parallel_loop();
    if (!loop) {
      b_.CreateRet(b_.getInt64(1));
      return;
    }
    for (std::size_t i = 0; i < dims_.size(); ++i) dims_[i] = element(function->getArg(0), b_.getInt64Ty(), i);
    bind_values();
    for (const ValueId bound : {loop->lo, loop->hi, loop->step}) demand(bound);
    b_.CreateRet(trip_count(*loop));
  }

  void demand(ValueId value) {
    for (const ValueId id : kernel::with_needs(kernel_, value))
      if (!values_[at(id)]) values_[at(id)] = compute(info(id));
  }

  llvm::IRBuilder<>& builder() override { return b_; }
  ScalarOps& scalars() override { return scalars_; }
  Value* address(kernel::BufferId buffer, ValueId index) override {
    return memory_.address(access(buffer, 1, none, 0), value(index));
  }

  Value* value(ValueId id) const override {
    LATHE_ASSERT(id != none && values_[at(id)]);
    return values_[at(id)];
  }

  Value* trip_count(const kernel::Loop& loop) {
    Value *lo = value(loop.lo), *hi = value(loop.hi), *step = value(loop.step);
    Value* last = b_.CreateSub(b_.CreateSub(hi, lo), b_.getInt64(1));
    Value* one_less = scalars_.apply(ScalarOp::div, i64, {last, step});
    return b_.CreateSelect(b_.CreateICmpSLT(lo, hi), b_.CreateAdd(one_less, b_.getInt64(1)), b_.getInt64(0));
  }

  void block(const kernel::Block& statements) {
    for (const kernel::Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
  }

  template <class F>
  void when(Value* condition, const F& then) {
    auto* inside = llvm::BasicBlock::Create(module_.getContext(), "then", body_);
    auto* after = llvm::BasicBlock::Create(module_.getContext(), "after", body_);
    b_.CreateCondBr(condition, inside, after);
    b_.SetInsertPoint(inside);
    then();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  void statement(const kernel::Compute& s) { values_[at(s.value)] = compute(info(s.value)); }

  MemoryAccess access(kernel::BufferId buffer, int lanes, ValueId mask, int alignment) const {
    return {buffers_[at(buffer)], kernel_.buffers[at(buffer)].dtype, lanes, mask == none ? nullptr : value(mask),
            alignment};
  }

  Value* compute(const Instruction& in) {
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

  Value* shuffle(const Instruction& in, Value* a, Value* b) {
    if (a->getType()->isVectorTy()) return b_.CreateShuffleVector(a, b, in.lanes);
    Value* result = llvm::PoisonValue::get(scalars_.type(in.type.scalar, in.type.lanes));
    for (std::size_t i = 0; i < in.lanes.size(); ++i)
      result = b_.CreateInsertElement(result, in.lanes[i] == 0 ? a : b, i);
    return result;
  }

  void statement(const kernel::Store& s) {
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

  void statement(const kernel::Prefetch& s) {
    const bool to_write = kernel_.buffers[at(s.buffer)].access != kernel::Access::read;
    memory_.prefetch(access(s.buffer, 1, none, 0), value(s.index), to_write);
  }

  /// Allocates a stack slot in the entry block: one per variable, even if a loop declares it.
  llvm::AllocaInst* slot(llvm::Type* type, const std::string& name) {
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(&body_->getEntryBlock(), body_->getEntryBlock().begin());
    return b_.CreateAlloca(type, nullptr, name);
  }

  void statement(const kernel::SetVar& s) {
    Value*& var = vars_[at(s.var)];
    const kernel::Type type = kernel_.vars[at(s.var)].type;
    if (!var) var = slot(scalars_.type(type.scalar, type.lanes), fmt::format("v{}", s.var));
    b_.CreateStore(value(s.value), var);
  }

  void statement(const kernel::Alloc& s) {
    const BufferInfo& buffer = kernel_.buffers[at(s.buffer)];
    if (buffers_[at(s.buffer)]) return;
    llvm::Type* type = buffer.dtype == boolean ? b_.getInt8Ty() : scalars_.type(buffer.dtype);
    auto* memory = slot(llvm::ArrayType::get(type, static_cast<std::uint64_t>(buffer.count)), buffer.name);
    memory->setAlignment(llvm::Align(64));
    buffers_[at(s.buffer)] = memory;
  }

  [[noreturn]] void of_a_gpu(std::string_view what) const {
    throw InternalError(fmt::format("kernel {}: {} in a kernel for the CPU", kernel_.name, what));
  }

  void statement(const kernel::Barrier&) { of_a_gpu("a barrier"); }
  void statement(const kernel::IntrinsicRegion& s) { of_a_gpu(fmt::format("a {}", s.record->name)); }

  void statement(const kernel::Check& s) {
    when(b_.CreateNot(value(s.condition)), [&] {
      Value* old = b_.CreateLoad(b_.getInt64Ty(), status_);
      Value* code = b_.getInt64(static_cast<std::uint64_t>(s.code));
      b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(old, b_.getInt64(0)), code, old), status_);
    });
  }

  void statement(const kernel::Branch& s) {
    llvm::LLVMContext& context = module_.getContext();
    auto* then = llvm::BasicBlock::Create(context, "then", body_);
    auto* otherwise = llvm::BasicBlock::Create(context, "else", body_);
    auto* after = llvm::BasicBlock::Create(context, "after", body_);
    b_.CreateCondBr(value(s.condition), then, otherwise);
    b_.SetInsertPoint(then);
    block(s.then_block);
    b_.CreateBr(after);
    b_.SetInsertPoint(otherwise);
    block(s.else_block);
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  void statement(const kernel::Loop& s) {
    if (s.kind == LoopKind::unroll) return unrolled(s);
    Value *lo = value(s.lo), *step = value(s.step), *hi = value(s.hi);
    if (s.kind == LoopKind::parallel) {
      // Iterations begin..end of the loop.
      hi = b_.CreateAdd(lo, b_.CreateMul(end_, step));
      lo = b_.CreateAdd(lo, b_.CreateMul(begin_, step));
    }
    llvm::LLVMContext& context = module_.getContext();
    auto* body = llvm::BasicBlock::Create(context, "loop", body_);
    auto* after = llvm::BasicBlock::Create(context, "after", body_);
    llvm::BasicBlock* before = b_.GetInsertBlock();
    b_.CreateCondBr(b_.CreateICmpSLT(lo, hi), body, after);
    b_.SetInsertPoint(body);
    llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2, "i");
    index->addIncoming(lo, before);
    values_[at(s.index)] = index;
    block(s.body);
    Value* next = b_.CreateNSWAdd(index, step);
    index->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, hi), body, after);
    b_.SetInsertPoint(after);
  }

  void unrolled(const kernel::Loop& s) {
    const std::int64_t lo = info(s.lo).integer, hi = info(s.hi).integer, step = info(s.step).integer;
    for (std::int64_t i = lo; i < hi; i += step) {
      values_[at(s.index)] = b_.getInt64(static_cast<std::uint64_t>(i));
      block(s.body);
    }
  }

  llvm::Module& module_;
  const Kernel& kernel_;
  const TargetCpu& target_;
  std::string symbol_;
  llvm::IRBuilder<> b_;
  ScalarOps scalars_;
  MemoryOps memory_;
  llvm::Function* body_ = nullptr;
  std::vector<Value*> values_, vars_, buffers_, dims_;
  Value *begin_ = nullptr, *end_ = nullptr, *status_ = nullptr;
  bool streams_ = false;
};

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const TargetCpu& target, const std::string& symbol) {
  Emitter(module, kernel, target, symbol).run();
}

}  // namespace lathe::codegen
