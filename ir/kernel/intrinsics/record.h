#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/kernel/verify/rules.h"

/// A record is the only interface to an intrinsic: the walkers, the printer, the verifier and the interpreter
/// query it and name no operation. Each back end emits operations through its own table of hooks by record
/// (codegen/llvm/intrinsics/hooks.h, codegen/cuda/intrinsics/hooks.h).
namespace lathe::kernel {

struct Thread;
class IntrinsicRun;

struct OperandCount {
  int least = 0, most = 0;
};

/// The threads that execute the operation together.
enum class Together : std::uint8_t {
  thread,     ///< each thread on its own
  warp,       ///< all threads of a warp
  warpgroup,  ///< all threads of a warpgroup
  pipeline,   ///< all consumers of a pipeline; its producers get the value too
};

/// The producer threads of a pipeline that execute the operation for a stage. The stage is consumed after everything
/// they started has arrived.
enum class ProducedBy : std::uint8_t { no_producer, each_producer, first_producer };

/// The effect on its variables. After `adds_later` starts adding to sums, only `adds_later` operations may use them
/// until a `waits` operation. `commits` ends a group of `adds_later` operations. `waits` waits for all groups except
/// the latest ones; their number is its first attribute. It ends a group before if its second attribute is not 0.
enum class OfSums : std::uint8_t { nothing, adds_later, commits, waits };

/// An access to a block in memory: elements first + row * stride + column. One row needs no stride.
struct BlockAccess {
  IntrinsicBuffer of{};
  ValueId first = none, stride = none;
  int rows = 1, columns = 1;
};

struct IntrinsicTraits {
  std::string_view name;  ///< as printed
  OperandCount args{}, buffers{}, vars{};
  std::size_t attributes = 0;
  bool of_map = false;         ///< has a tensor map
  bool gives_value = false;    ///< if false, its type is no_value
  bool is_pure = false;        ///< its value depends only on its args
  bool runs_kernel = false;    ///< runs one of Kernel::phase_kernels (ir/kernel/phases.h)
  bool orders_blocks = false;  ///< waits for other blocks of the launch
  bool passes_on = false;      ///< its value is that of its first arg in some thread
  Together together = Together::thread;
  ProducedBy produced_by = ProducedBy::no_producer;
  OfSums sums = OfSums::nothing;
  int shared_alignment = 16;    ///< alignment of its shared-memory buffers in bytes
  int parameter_alignment = 1;  ///< alignment in bytes that it relies on for parameters; 1: that of an element
};

/// A body of an intrinsic region (region.h).
struct RegionBody {
  const IntrinsicRegionRecord* record = nullptr;
  std::size_t body = 0;
};

/// The context of a statement.
struct IntrinsicContext {
  int thread_loops = 0;
  int warp_loops = 0;  ///< loops over whole warps
  int branches = 0;
  const Loop* threads = nullptr;          ///< the innermost thread loop
  std::span<const RegionBody> regions{};  ///< outermost first

  bool is_in(const IntrinsicRegionRecord& record) const;
  bool is_in(const IntrinsicRegionRecord& record, std::size_t body) const;
};

/// The input of the rules of intrinsics and regions.
struct PlaceRules {
  const Kernel& kernel;
  const IntrinsicContext& context;

  template <class... Args>
  void require(bool condition, std::string_view label, fmt::format_string<Args...> text, Args&&... args) const {
    kernel::require(kernel, condition, label, text, std::forward<Args>(args)...);
  }
};

/// The input of an operation's rules. The operands are in scope, match the record's counts, and their buffers allow
/// the accesses.
struct IntrinsicRules : PlaceRules {
  const Instruction& in;

  void want(ValueId id, Type type, std::string_view what) const { kernel::want(kernel, value(id).type, type, what); }
  const Instruction& value(ValueId id) const { return kernel.values[id]; }
  const BufferInfo& buffer(BufferId id) const { return kernel.buffers[id]; }
  /// Throws [alignment] if the value is a constant that is not a multiple of `of`.
  void want_multiple(ValueId id, int of, std::string_view what) const;
};

/// The printed names of operands.
class IntrinsicText {
 public:
  virtual ~IntrinsicText() = default;
  virtual std::string value(ValueId id) const = 0;
  virtual const std::string& buffer(BufferId id) const = 0;
  virtual const std::string& var(VarId id) const = 0;
};

/// The text after the name of an operation or a region, and the operands that it names. Each function takes what it
/// returns from the text, and throws ParseError if something else is there.
class IntrinsicReader {
 public:
  virtual ~IntrinsicReader() = default;
  virtual ValueId value() = 0;
  virtual BufferId buffer() = 0;
  virtual VarId var() = 0;
  virtual int map() = 0;     ///< an index into the kernel's tensor maps
  virtual int number() = 0;  ///< an integer of 32 bits
  virtual int suffix() = 0;  ///< the number after the name and a dot
  /// Takes a word or a punctuation mark; `accept` returns whether it is there.
  virtual void expect(std::string_view token) = 0;
  virtual bool accept(std::string_view token) = 0;
  /// Returns whether the name of a buffer and "[" are next.
  virtual bool at_access() const = 0;
  virtual Type type(VarId var) const = 0;
  /// Defines the index of a region by the name that is next.
  virtual ValueId index() = 0;

  /// Takes words, separated by spaces in `text`.
  void words(std::string_view text);
  /// "[value]"
  ValueId element();
  /// "item, item, ..."; `item` takes one.
  template <class Item>
  void list(const Item& item) {
    do item();
    while (accept(","));
  }
};

/// The interface that an operation's file implements: named operands, conversion from and to an instruction, rules
/// (each failure has a label), text and its parser, and interpretation. `parse` takes what `text` puts after the
/// name, and leaves the type of the value open. `interpret` takes one thread, or all threads that execute the
/// operation together, and the id of the computed value.
template <class Op>
concept IntrinsicOperation =
    requires(const Op& op, const Instruction& in, const IntrinsicRules& rules, const IntrinsicText& text,
             IntrinsicReader& reader) {
      { Op::of(in) } -> std::same_as<Op>;
      { op.instruction() } -> std::same_as<Instruction>;
      { op.text(text) } -> std::same_as<std::string>;
      { Op::parse(reader) } -> std::same_as<Op>;
      op.verify(rules);
    } &&
    (requires(const Op& op, const IntrinsicRun& run, ValueId id, Thread& thread) { op.interpret(run, id, thread); } ||
     requires(const Op& op, const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) {
       op.interpret(run, id, threads);
     });

struct IntrinsicRecord : IntrinsicTraits {
  void (*verify)(const IntrinsicRules& rules);
  std::string (*text)(const Instruction& in, const IntrinsicText& text);
  Instruction (*parse)(IntrinsicReader& in);
  void (*interpret)(const Instruction& in, const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads);
  /// Returns the blocks that it accesses directly, without a copy to shared memory.
  std::vector<BlockAccess> (*blocks)(const Instruction& in);
};

/// Returns the record of an operation. Fails to compile if the operation lacks a part.
template <IntrinsicOperation Op>
constexpr IntrinsicRecord intrinsic_record(const IntrinsicTraits& traits) {
  return {traits,
          [](const IntrinsicRules& rules) { Op::of(rules.in).verify(rules); },
          [](const Instruction& in, const IntrinsicText& text) { return Op::of(in).text(text); },
          [](IntrinsicReader& in) { return Op::parse(in).instruction(); },
          [](const Instruction& in, const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) {
            const Op op = Op::of(in);
            if constexpr (requires { op.interpret(run, id, threads); })
              op.interpret(run, id, threads);
            else
              for (Thread* thread : threads) op.interpret(run, id, *thread);
          },
          []([[maybe_unused]] const Instruction& in) -> std::vector<BlockAccess> {
            if constexpr (requires(const Op& op) { op.blocks(); })
              return Op::of(in).blocks();
            else
              return {};
          }};
}

/// Returns the instruction that executes an operation.
Instruction intrinsic_instruction(IntrinsicOp op, std::vector<ValueId> args, Type type = no_value);
/// Returns "name a, b", the text of an operation whose operands are all values.
std::string plain_text(std::string_view name, const std::vector<ValueId>& args, const IntrinsicText& text);

/// Returns the record of an intrinsic; null for other instructions and statements.
inline const IntrinsicRecord* record_of(const Instruction& in) { return in.machine ? in.machine->record : nullptr; }
const IntrinsicRecord* record_of(const Kernel& kernel, const Statement& statement);
/// Returns the intrinsic that a statement executes, or null.
const Instruction* intrinsic_operation(const Kernel& kernel, const Statement& statement);
/// Returns the name of an intrinsic, or of another instruction's opcode.
std::string_view name_of(const Instruction& in);
/// Returns whether more than one thread takes part.
bool is_collective(const Instruction& in);
/// Returns whether it accesses no memory and involves no other threads.
bool computes_alone(const Instruction& in);

/// Checks that the operand counts match the record (arity), and that it has a value if the record says so (type).
void verify_operands(const Kernel& kernel, const Instruction& in);

}  // namespace lathe::kernel
