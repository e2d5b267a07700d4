#include "ir/kernel/intrinsics/gpu/async_copy.h"

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

constinit const IntrinsicRecord async_copy_record =
    intrinsic_record<AsyncCopy>({.name = "async_copy",
                                 .args = {2, 3},
                                 .buffers = {2, 2},
                                 .produced_by = ProducedBy::each_producer,
                                 .parameter_alignment = async_copy_bytes});

AsyncCopy AsyncCopy::of(const Instruction& in) {
  const auto& buffers = in.machine->buffers;
  return {buffers[0].id, buffers[1].id, in.args[0], in.args[1], in.args.size() > 2 ? in.args[2] : none};
}

Instruction AsyncCopy::instruction() const {
  std::vector<ValueId> args = {to_index, from_index};
  if (count != none) args.push_back(count);
  return intrinsic_instruction({.record = &async_copy_record, .buffers = {{to, Access::write}, {from, Access::read}}},
                               std::move(args));
}

void AsyncCopy::verify(const IntrinsicRules& rules) const {
  for (const ValueId id : {to_index, from_index}) rules.want(id, {i64, 1}, "the index of an async_copy");
  if (count != none) rules.want(count, {i64, 1}, "the count of an async_copy");
  const BufferInfo &target = rules.buffer(to), &source = rules.buffer(from);
  rules.require(target.space == Space::shared, "copy_buffers", "an async_copy to {}, which is not shared",
                target.name);
  rules.require(source.space == Space::parameter && source.access == Access::read, "copy_buffers",
                "an async_copy from {}, which is no parameter that is only read", source.name);
  rules.require(target.dtype == source.dtype && target.dtype != boolean, "copy_buffers", "an async_copy of {} to {}",
                name(source.dtype), name(target.dtype));
  rules.require(rules.context.thread_loops > 0, "copy_context", "an async_copy outside the thread loops");
}

std::string AsyncCopy::text(const IntrinsicText& text) const {
  std::string result = fmt::format("async_copy {}[{}] = {}[{}]", text.buffer(to), text.value(to_index),
                                   text.buffer(from), text.value(from_index));
  if (count != none) result += " count " + text.value(count);
  return result;
}

AsyncCopy AsyncCopy::parse(IntrinsicReader& in) {
  AsyncCopy copy;
  copy.to = in.buffer(), copy.to_index = in.element();
  in.expect("=");
  copy.from = in.buffer(), copy.from_index = in.element();
  if (in.accept("count")) copy.count = in.value();
  return copy;
}

void AsyncCopy::interpret(const IntrinsicRun& run, ValueId, Thread& t) const {
  const Target target = run.target(to, t), source = run.target(from, t);
  const std::int64_t at = run.integer(to_index, t), from_at = run.integer(from_index, t);
  const auto elements = static_cast<std::int64_t>(async_copy_bytes / size_in_bytes(target.info->dtype));
  const std::int64_t given = count == none ? elements : run.integer(count, t);
  target.check_alignment(async_copy_bytes, at);
  if (given > 0) source.check_alignment(async_copy_bytes, from_at);
  const Actor actor = run.actor(t);
  t.copies.start(t.scratch[to], target, at, source.load_chunk(from_at, elements, given, actor), actor);
}

void async_copy(Builder& builder, Buffer to, Builder::Bound to_index, Buffer from, Builder::Bound from_index,
                Value count) {
  builder.machine(
      AsyncCopy{to.id, from.id, builder.bound(to_index).id, builder.bound(from_index).id, count.id}.instruction());
}

constinit const IntrinsicRecord commit_copies_record = intrinsic_record<CommitCopies>({.name = "commit_copies"});

CommitCopies CommitCopies::of(const Instruction&) { return {}; }
Instruction CommitCopies::instruction() const { return intrinsic_instruction({.record = &commit_copies_record}, {}); }

void CommitCopies::verify(const IntrinsicRules& rules) const {
  rules.require(rules.context.thread_loops > 0, "copy_context", "a commit_copies outside the thread loops");
}

std::string CommitCopies::text(const IntrinsicText&) const { return "commit_copies"; }

CommitCopies CommitCopies::parse(IntrinsicReader&) { return {}; }

void CommitCopies::interpret(const IntrinsicRun&, ValueId, Thread& t) const { t.copies.commit(); }

void commit_copies(Builder& builder) { builder.machine(CommitCopies{}.instruction()); }

constinit const IntrinsicRecord wait_copies_record =
    intrinsic_record<WaitCopies>({.name = "wait_copies", .attributes = 1});

WaitCopies WaitCopies::of(const Instruction& in) { return {static_cast<int>(in.machine->attributes[0])}; }
Instruction WaitCopies::instruction() const {
  return intrinsic_instruction({.record = &wait_copies_record, .attributes = {pending}}, {});
}

void WaitCopies::verify(const IntrinsicRules& rules) const {
  rules.require(rules.context.thread_loops > 0, "copy_context", "a wait_copies outside the thread loops");
  rules.require(pending >= 0 && pending < 8, "copy_groups", "a wait for all but {} groups", pending);
}

std::string WaitCopies::text(const IntrinsicText&) const { return fmt::format("wait_copies {}", pending); }

WaitCopies WaitCopies::parse(IntrinsicReader& in) { return {in.number()}; }

void WaitCopies::interpret(const IntrinsicRun& run, ValueId, Thread& t) const {
  t.copies.wait(pending, run.actor(t));
}

void wait_copies(Builder& builder, int pending) { builder.machine(WaitCopies{pending}.instruction()); }

namespace {
constexpr const IntrinsicRecord* copy_records[] = {&async_copy_record, &commit_copies_record, &wait_copies_record};
}  // namespace
extern const IntrinsicFamily copy_intrinsics;
constinit const IntrinsicFamily copy_intrinsics{.operations = copy_records};

}  // namespace lathe::kernel
