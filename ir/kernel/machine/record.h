#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/kernel/verify/rules.h"

/// What all of Lathe knows of a machine operation is its record: the walkers, the printer, the verifier and the
/// interpreter ask it and name no operation. How a back end writes an operation is the back end's: it has a table of
/// hooks by record (codegen/llvm/machine/hooks.h, codegen/cuda/machine/hooks.h).
namespace lathe::kernel {

struct Thread;
class MachineRun;

struct OperandCount {
  int least = 0, most = 0;
};

/// Which threads carry out one together.
enum class Together : std::uint8_t {
  thread,     ///< each for itself
  warp,       ///< all of a warp
  warpgroup,  ///< all of a warpgroup
  pipeline,   ///< all of a pipeline, whose producers get the value too
};

/// Which producer threads of a pipeline carry it out for a stage. The stage is consumed when what they started has
/// arrived.
enum class ProducedBy : std::uint8_t { nobody, each_producer, first_producer };

/// What it does to its variables: sums that it begins to add to are used by nothing but further such operations until
/// one has waited for them.
enum class OfSums : std::uint8_t { nothing, adds_later, waits };

/// An access of a block in memory: elements first + row * stride + column.
struct BlockAccess {
  MachineBuffer of{};
  ValueId first = none, stride = none;
  int rows = 1, columns = 1;
};

struct MachineTraits {
  std::string_view name;  ///< as it is printed
  OperandCount args{}, buffers{}, vars{};
  std::size_t attributes = 0;
  bool of_map = false;       ///< it has a tensor map
  bool gives_value = false;  ///< else its type is no_value
  bool is_pure = false;      ///< its value follows from its args alone
  bool passes_on = false;    ///< its value is that of its first arg in some thread
  Together together = Together::thread;
  ProducedBy produced_by = ProducedBy::nobody;
  OfSums sums = OfSums::nothing;
  int shared_alignment = 16;  ///< bytes that its buffers in shared memory begin at a multiple of
};

/// A body of a machine region (region.h).
struct RegionBody {
  const MachineRegionRecord* record = nullptr;
  std::size_t body = 0;
};

/// What stands around a statement.
struct MachineContext {
  int thread_loops = 0;
  int warp_loops = 0;  ///< of whole warps
  int branches = 0;
  const Loop* threads = nullptr;          ///< the innermost thread loop
  std::span<const RegionBody> regions{};  ///< from the outside in

  bool is_in(const MachineRegionRecord& record) const;
  bool is_in(const MachineRegionRecord& record, std::size_t body) const;
};

/// What the rules of machine operations and regions look at.
struct PlaceRules {
  const Kernel& kernel;
  const MachineContext& context;

  template <class... Args>
  void require(bool condition, std::string_view label, fmt::format_string<Args...> text, Args&&... args) const {
    kernel::require(kernel, condition, label, text, std::forward<Args>(args)...);
  }
};

/// Of an operation: operands are in scope, of the record's number, and buffers may be accessed as they are.
struct MachineRules : PlaceRules {
  const Instruction& in;

  void want(ValueId id, Type type, std::string_view what) const { kernel::want(kernel, value(id).type, type, what); }
  const Instruction& value(ValueId id) const { return kernel.values[static_cast<std::size_t>(id)]; }
  const BufferInfo& buffer(BufferId id) const { return kernel.buffers[static_cast<std::size_t>(id)]; }
  /// Throws [alignment] where the value is a constant, but no multiple.
  void want_multiple(ValueId id, int of, std::string_view what) const;
};

/// The names that operands are printed under.
class MachineText {
 public:
  virtual ~MachineText() = default;
  virtual std::string value(ValueId id) const = 0;
  virtual const std::string& buffer(BufferId id) const = 0;
  virtual const std::string& var(VarId id) const = 0;
};

/// An operation as its file defines it: its operands by name, made of an instruction and made one, its rules (each
/// failure with a label), its text, and what it does: for one thread, or for all that carry it out together. It is
/// told the value that it computes.
template <class Op>
concept MachineOperation =
    requires(const Op& op, const Instruction& in, const MachineRules& rules, const MachineText& text) {
      { Op::of(in) } -> std::same_as<Op>;
      { op.instruction() } -> std::same_as<Instruction>;
      { op.text(text) } -> std::same_as<std::string>;
      op.verify(rules);
    } &&
    (requires(const Op& op, const MachineRun& run, ValueId id, Thread& thread) { op.interpret(run, id, thread); } ||
     requires(const Op& op, const MachineRun& run, ValueId id, std::span<Thread* const> threads) {
       op.interpret(run, id, threads);
     });

struct MachineRecord : MachineTraits {
  void (*verify)(const MachineRules& rules);
  std::string (*text)(const Instruction& in, const MachineText& text);
  void (*interpret)(const Instruction& in, const MachineRun& run, ValueId id, std::span<Thread* const> threads);
  /// The blocks that it accesses itself, of those that are not copied to shared memory.
  std::vector<BlockAccess> (*blocks)(const Instruction& in);
};

/// The record of an operation. It is no program where the operation lacks a part.
template <MachineOperation Op>
constexpr MachineRecord machine_record(const MachineTraits& traits) {
  return {traits, [](const MachineRules& rules) { Op::of(rules.in).verify(rules); },
          [](const Instruction& in, const MachineText& text) { return Op::of(in).text(text); },
          [](const Instruction& in, const MachineRun& run, ValueId id, std::span<Thread* const> threads) {
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

/// The instruction that carries out an operation.
Instruction machine_instruction(MachineOp op, std::vector<ValueId> args, Type type = no_value);
/// "name a, b": how an operation of values alone is printed.
std::string plain_text(std::string_view name, const std::vector<ValueId>& args, const MachineText& text);

/// The record of a machine operation; null for other instructions and statements.
inline const MachineRecord* record_of(const Instruction& in) { return in.machine ? in.machine->record : nullptr; }
const MachineRecord* record_of(const Kernel& kernel, const Statement& statement);
/// The instruction that a statement carries out, if it is a machine operation; else null.
const Instruction* machine_operation(const Kernel& kernel, const Statement& statement);
/// The name of a machine operation, or of another instruction's opcode.
std::string_view name_of(const Instruction& in);
/// Whether more threads than one take part in it.
bool is_collective(const Instruction& in);
/// Whether it touches no memory, and other threads take no part in it.
bool computes_alone(const Instruction& in);

/// As many operands of each kind as the record has (arity), a value where it gives one (type).
void verify_operands(const Kernel& kernel, const Instruction& in);

}  // namespace lathe::kernel
