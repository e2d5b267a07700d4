#include "codegen/llvm/library/cpu/launch_functions.h"

#include <limits>

namespace lathe::codegen {

namespace {

constexpr auto internal = llvm::GlobalValue::InternalLinkage;
constexpr std::int64_t no_status = std::numeric_limits<std::int64_t>::max();

/// The argument of the tasks of a parallel loop, in words.
enum class Job : int { records, status, words };

}  // namespace

LaunchFunctions::LaunchFunctions(llvm::Module& module, const Library& library, const std::string& prefix)
    : ModuleCode(module, library), prefix_(prefix) {
  emit_prepare();
  emit_run_chunk();
  emit_task();
  emit_in_parallel();
  emit_in_sequence();
  emit_run_group();
}

/// Returns the iterations per chunk; grain_of() in runtime/cpu/cpu_runner.cpp says why.
llvm::Value* LaunchFunctions::grain(Value* extent, Value* work) {
  const LibraryTasks& tasks = library_.tasks;
  Value* most = b_.CreateSelect(b_.CreateICmpSLT(work, number(tasks.heavy_work)), number(tasks.light_chunks),
                                number(tasks.heavy_chunks));
  Value* least = b_.CreateSDiv(number(tasks.least_chunk_work), at_least(work, 1));
  Value* grain = at_least(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, least, b_.CreateSDiv(extent, most)), 1);
  Value* fewest = divide_up(extent, grain);
  Value* of_four = b_.CreateMul(b_.CreateSDiv(b_.CreateAdd(fewest, number(3)), number(4)), number(4));
  Value* chunks = b_.CreateSelect(b_.CreateICmpSLE(fewest, number(2)), fewest, of_four);
  return at_least(b_.CreateSelect(b_.CreateICmpSGT(chunks, number(0)), divide_up(extent, at_least(chunks, 1)), grain),
                  1);
}

void LaunchFunctions::emit_prepare() {
  prepare_ = start(prefix_ + "_prepare", b_.getVoidTy(), {ptr(), ptr(), b_.getInt1Ty(), i64(), i64()}, internal,
                   {"launch", "extent", "is_run", "work", "bytes"});
  Value *record = prepare_->getArg(0), *given_work = prepare_->getArg(3), *bytes = prepare_->getArg(4);
  auto* extent_type = llvm::FunctionType::get(i64(), {ptr()}, false);
  Value* extent = b_.CreateCall(extent_type, prepare_->getArg(1), {field_pointer(record, LaunchRecord::dims)});
  extent = b_.CreateSelect(prepare_->getArg(2), extent, number(0), "iterations");
  Value* of_memory =
      b_.CreateMul(b_.CreateSDiv(bytes, at_least(extent, 1)), number(library_.tasks.byte_work), "of_memory");
  Value* work = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, given_work, of_memory);
  Value* chosen = grain(extent, work);
  Value* limit = number(library_.tasks.together_work);
  Value* is_large = b_.CreateICmpSGT(work, b_.CreateSDiv(limit, at_least(extent, 1)));
  Value* all_work =
      b_.CreateSelect(b_.CreateAnd(b_.CreateICmpSGT(extent, number(0)), is_large), limit, b_.CreateMul(work, extent));
  const auto set = [&](LaunchRecord which, Value* value) {
    b_.CreateStore(value, word(record, static_cast<int>(which)));
  };
  set(LaunchRecord::iterations, extent);
  set(LaunchRecord::grain, chosen);
  set(LaunchRecord::chunks, divide_up(extent, chosen));
  set(LaunchRecord::work, all_work);
  b_.CreateRetVoid();
}

/// void (ptr record, i64 chunk, i64 worker, ptr status)
void LaunchFunctions::emit_run_chunk() {
  run_chunk_ = start(prefix_ + "_run_chunk", b_.getVoidTy(), {ptr(), i64(), i64(), ptr()}, internal,
                     {"launch", "chunk", "worker", "status"});
  Value *record = run_chunk_->getArg(0), *worker = run_chunk_->getArg(2);
  Value* grain = field(record, LaunchRecord::grain);
  Value* begin = b_.CreateMul(run_chunk_->getArg(1), grain, "begin");
  Value* end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(begin, grain),
                                        field(record, LaunchRecord::iterations));
  Value *given = field_pointer(record, LaunchRecord::buffers),
        *strides = field_pointer(record, LaunchRecord::strides);
  auto* run_type = llvm::FunctionType::get(b_.getVoidTy(), {ptr(), ptr(), i64(), i64(), ptr()}, false);
  const auto run_on = [&](Value* buffers) {
    b_.CreateCall(run_type, field_pointer(record, LaunchRecord::run),
                  {buffers, field_pointer(record, LaunchRecord::dims), begin, end, run_chunk_->getArg(3)});
    b_.CreateRetVoid();
  };
  llvm::BasicBlock *own = block("own_scratch"), *shared = block("shared");
  b_.CreateCondBr(b_.CreateIsNull(strides), shared, own);
  b_.SetInsertPoint(shared);
  run_on(given);
  b_.SetInsertPoint(own);
  Value* count = field(record, LaunchRecord::count);
  Value* buffers = b_.CreateAlloca(ptr(), count, "buffers");
  repeat(count, [&](Value* i) {
    Value* offset = b_.CreateMul(worker, load_word(strides, i));
    b_.CreateStore(byte(b_.CreateLoad(ptr(), word(given, i)), offset), word(buffers, i));
  });
  run_on(buffers);
}

/// void (ptr job, i64 index, i32 worker): runs chunk `index` of all chunks of the job's launches.
void LaunchFunctions::emit_task() {
  task_ = start(prefix_ + "_task", b_.getVoidTy(), {ptr(), i64(), b_.getInt32Ty()}, internal, {"job", "i", "worker"});
  Value* job = task_->getArg(0);
  Value* records = load_pointer(job, static_cast<int>(Job::records));
  llvm::AllocaInst* status = b_.CreateAlloca(i64(), nullptr, "status");
  llvm::AllocaInst* control = b_.CreateAlloca(b_.getInt32Ty(), b_.getInt32(2), "control");
  b_.CreateStore(number(0), status);
  llvm::BasicBlock *entry = b_.GetInsertBlock(), *find = block("find"), *next = block("next_launch"),
                   *run = block("run");
  b_.CreateBr(find);
  b_.SetInsertPoint(find);
  llvm::PHINode *launch = b_.CreatePHI(i64(), 2, "launch"), *chunk = b_.CreatePHI(i64(), 2, "chunk");
  launch->addIncoming(number(0), entry);
  chunk->addIncoming(task_->getArg(1), entry);
  Value* chosen = record(records, launch);
  Value* chunks = field(chosen, LaunchRecord::chunks);
  b_.CreateCondBr(b_.CreateICmpSGE(chunk, chunks), next, run);
  b_.SetInsertPoint(next);
  launch->addIncoming(b_.CreateAdd(launch, number(1)), next);
  chunk->addIncoming(b_.CreateSub(chunk, chunks), next);
  b_.CreateBr(find);
  b_.SetInsertPoint(run);
  enter_float_environment(b_, control);
  b_.CreateCall(run_chunk_, {chosen, chunk, b_.CreateSExt(task_->getArg(2), i64()), status});
  leave_float_environment(b_, control);
  Value* code = b_.CreateLoad(i64(), status);
  when(b_.CreateICmpNE(code, number(0)), [&] {
    b_.CreateAtomicRMW(llvm::AtomicRMWInst::UMin, word(job, static_cast<int>(Job::status)), code, llvm::MaybeAlign(),
                       llvm::AtomicOrdering::Monotonic);
  });
  b_.CreateRetVoid();
}

/// i64 (ptr records, i64 chunks, ptr workers)
void LaunchFunctions::emit_in_parallel() {
  in_parallel_ =
      start(prefix_ + "_in_parallel", i64(), {ptr(), i64(), ptr()}, internal, {"launches", "chunks", "workers"});
  Value* workers = in_parallel_->getArg(2);
  llvm::AllocaInst* job = b_.CreateAlloca(i64(), number(static_cast<int>(Job::words)), "job");
  b_.CreateStore(in_parallel_->getArg(0), word(job, static_cast<int>(Job::records)));
  b_.CreateStore(number(no_status), word(job, static_cast<int>(Job::status)));
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr(), i64(), ptr(), ptr()}, false);
  b_.CreateCall(
      type, load_pointer(workers, static_cast<int>(WorkersLayout::parallel_for)),
      {load_pointer(workers, static_cast<int>(WorkersLayout::context)), in_parallel_->getArg(1), task_, job});
  Value* status = load_word(job, static_cast<int>(Job::status));
  b_.CreateRet(b_.CreateSelect(b_.CreateICmpEQ(status, number(no_status)), number(0), status));
}

/// i64 (ptr record): all chunks of one launch.
void LaunchFunctions::emit_in_sequence() {
  in_sequence_ = start(prefix_ + "_in_sequence", i64(), {ptr()}, internal, {"launch"});
  Value* record = in_sequence_->getArg(0);
  llvm::AllocaInst *status = b_.CreateAlloca(i64(), nullptr, "status"),
                   *lowest = b_.CreateAlloca(i64(), nullptr, "lowest");
  b_.CreateStore(number(no_status), lowest);
  repeat(field(record, LaunchRecord::chunks), [&](Value* chunk) {
    b_.CreateStore(number(0), status);
    b_.CreateCall(run_chunk_, {record, chunk, number(0), status});
    Value *code = b_.CreateLoad(i64(), status), *before = b_.CreateLoad(i64(), lowest);
    Value* lower = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, code, before);
    b_.CreateStore(b_.CreateSelect(b_.CreateICmpEQ(code, number(0)), before, lower), lowest);
  });
  Value* code = b_.CreateLoad(i64(), lowest);
  b_.CreateRet(b_.CreateSelect(b_.CreateICmpEQ(code, number(no_status)), number(0), code));
}

void LaunchFunctions::emit_run_group() {
  run_group_ = start(prefix_ + "_run_group", i64(), {ptr(), i64(), b_.getInt1Ty(), ptr()}, internal,
                     {"launches", "count", "are_parts", "workers"});
  Value *records = run_group_->getArg(0), *count = run_group_->getArg(1), *workers = run_group_->getArg(3);
  llvm::AllocaInst *work = b_.CreateAlloca(i64(), nullptr, "work"),
                   *chunks = b_.CreateAlloca(i64(), nullptr, "chunks"),
                   *divided = b_.CreateAlloca(b_.getInt1Ty(), nullptr, "divided"),
                   *status = b_.CreateAlloca(i64(), nullptr, "status");
  for (llvm::AllocaInst* sum : {work, chunks, status}) b_.CreateStore(number(0), sum);
  b_.CreateStore(b_.getFalse(), divided);
  const auto add = [&](llvm::AllocaInst* sum, Value* value) {
    b_.CreateStore(b_.CreateAdd(b_.CreateLoad(i64(), sum), value), sum);
  };
  llvm::BasicBlock *has_workers = block("has_workers"), *parallel = block("parallel"), *each = block("each");
  b_.CreateCondBr(b_.CreateIsNull(workers), each, has_workers);
  b_.SetInsertPoint(has_workers);
  Value* threads = b_.CreateLoad(b_.getInt32Ty(), word(workers, static_cast<int>(WorkersLayout::count)), "threads");
  require(b_.CreateICmpSGT(threads, b_.getInt32(1)), each);
  repeat(count, [&](Value* i) {
    Value* one = record(records, i);
    Value* parts = field(one, LaunchRecord::chunks);
    add(work, field(one, LaunchRecord::work));
    add(chunks, parts);
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt1Ty(), divided), b_.CreateICmpSGT(parts, number(1))), divided);
  });
  Value* is_light = b_.CreateICmpSLT(b_.CreateLoad(i64(), work), number(library_.tasks.together_work));
  Value* may_run = b_.CreateOr(b_.CreateOr(b_.CreateICmpEQ(count, number(1)), run_group_->getArg(2)), is_light);
  b_.CreateCondBr(b_.CreateAnd(b_.CreateLoad(b_.getInt1Ty(), divided), may_run), parallel, each);
  b_.SetInsertPoint(parallel);
  b_.CreateRet(b_.CreateCall(in_parallel_, {records, b_.CreateLoad(i64(), chunks), workers}));

  // One launch after the other, each on all workers.
  b_.SetInsertPoint(each);
  llvm::BasicBlock* failed = block("failed");
  repeat(count, [&](Value* i) {
    Value* one = record(records, i);
    Value* parts = field(one, LaunchRecord::chunks);
    llvm::BasicBlock *shared = block("shared"), *alone = block("alone"), *ended = block("ended");
    Value* is_shared = b_.CreateAnd(b_.CreateICmpSGT(parts, number(1)), b_.CreateLoad(b_.getInt1Ty(), divided));
    b_.CreateCondBr(is_shared, shared, alone);
    b_.SetInsertPoint(shared);
    b_.CreateStore(b_.CreateCall(in_parallel_, {one, parts, workers}), status);
    b_.CreateBr(ended);
    b_.SetInsertPoint(alone);
    b_.CreateStore(b_.CreateCall(in_sequence_, {one}), status);
    b_.CreateBr(ended);
    b_.SetInsertPoint(ended);
    require(b_.CreateICmpEQ(b_.CreateLoad(i64(), status), number(0)), failed);
  });
  b_.CreateRet(number(0));
  b_.SetInsertPoint(failed);
  b_.CreateRet(b_.CreateLoad(i64(), status));
}

}  // namespace lathe::codegen
