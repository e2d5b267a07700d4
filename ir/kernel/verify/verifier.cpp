#include "ir/kernel/verify/verifier.h"

#include <bit>
#include <string_view>
#include <utility>

#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/limits.h"
#include "ir/kernel/verify/arithmetic_rules.h"
#include "ir/kernel/verify/definitions.h"
#include "ir/kernel/verify/rules.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/kernel/verify/sums_rules.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), scope_(kernel) {}

  void run() {
    bool parameters_over = false;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const bool parameter = kernel_.buffers[i].space == Space::parameter;
      parameters_over = parameters_over || !parameter;
      require(!(parameter && parameters_over), "buffer_order", "parameter {} follows an allocation", i);
      require(!is_complex(kernel_.buffers[i].dtype), "complex", "buffer {} is complex", kernel_.buffers[i].name);
    }
    for (std::size_t i = 0; i < kernel_.values.size(); ++i) placed_everywhere(i);
    for (const TensorMap& map : kernel_.maps) verify_map(kernel_, map);
    verify_parallel_loop(kernel_);
    for (const auto& phase : kernel_.phase_kernels) verify(*phase);
    block(kernel_.body);
    verify_sums(kernel_);
    require(scratch_bytes_ <= most_stack_bytes, "scratch_size", "{} bytes of stack scratch", scratch_bytes_);
  }

 private:
  template <class... Args>
  void require(bool condition, std::string_view label, fmt::format_string<Args...> text, Args&&... args) const {
    kernel::require(kernel_, condition, label, text, std::forward<Args>(args)...);
  }

  const Instruction& at(ValueId id) const { return kernel_.values[id]; }

  /// Checks the values that are defined everywhere: constants and dims.
  void placed_everywhere(std::size_t i) {
    const Instruction& in = kernel_.values[i];
    const auto lanes = static_cast<unsigned>(in.type.lanes);
    require((lanes >= 1 && lanes <= 64 && std::has_single_bit(lanes)) || (in.machine && in.type == no_value), "lanes",
            "value {} has {} lanes", i, in.type.lanes);
    require(!is_complex(in.type.scalar), "complex", "value {} is complex", i);
    if (in.op == Opcode::dim)
      require(in.type == Type{i64, 1} && in.integer >= 0 && in.integer < static_cast<int>(kernel_.dims.size()),
              "dim_range", "value {} names dim {}", i, in.integer);
    if (in.op == Opcode::constant) verify_constant(kernel_, in);
  }

  void block(const Block& statements) {
    const Definitions::Mark before = scope_.mark();
    ++depth_;
    for (const Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
    --depth_;
    scope_.forget(before);
  }

  Type use(ValueId id) const { return scope_.use(id); }

  void want(Type have, Type type, std::string_view what) const { kernel::want(kernel_, have, type, what); }

  const BufferInfo& buffer(BufferId id, bool writes) const { return scope_.buffer(id, writes); }

  void mask(ValueId id, int lanes) const {
    if (id != none) want(use(id), {boolean, lanes}, "the mask");
  }

  void arguments(const Instruction& in, std::size_t count) const {
    require(in.args.size() == count, "arity", "{} has {} operands", kernel::name(in.op), in.args.size());
    for (const ValueId arg : in.args) use(arg);
  }

  void statement(const Compute& s) {
    require(s.value >= 0 && s.value < static_cast<int>(kernel_.values.size()), "value_range",
            "value {} does not exist", s.value);
    instruction(at(s.value));
    scope_.define(s.value);
  }

  void instruction(const Instruction& in) const {
    const Type index{i64, 1};
    const int lanes = in.type.lanes;
    switch (in.op) {
      case Opcode::constant:
      case Opcode::dim:
      case Opcode::loop_index: require(false, "placement", "a {} is no statement", kernel::name(in.op)); break;
      case Opcode::scalar:
        arguments(in, static_cast<std::size_t>(arity(in.scalar_op)));
        verify_scalar(kernel_, in);
        break;
      case Opcode::fma:
        arguments(in, 3);
        for (const ValueId arg : in.args) want(at(arg).type, in.type, "an operand of fma");
        require(in.type.scalar == f32 || in.type.scalar == f64, "storage_type", "fma of {}", in.type);
        break;
      case Opcode::broadcast:
        arguments(in, 1);
        want(at(in.args[0]).type, {in.type.scalar, 1}, "the operand of broadcast");
        break;
      case Opcode::ramp:
        arguments(in, 2);
        require(is_integer(in.type.scalar), "type", "a ramp of {}", in.type);
        for (const ValueId arg : in.args) want(at(arg).type, {in.type.scalar, 1}, "an operand of ramp");
        break;
      case Opcode::reduce:
        arguments(in, 1);
        verify_reduction(kernel_, in);
        break;
      case Opcode::extract:
        arguments(in, 1);
        want(in.type, {at(in.args[0]).type.scalar, 1}, "an extracted lane");
        require(in.integer >= 0 && in.integer < at(in.args[0]).type.lanes, "lanes", "lane {} of {}", in.integer,
                at(in.args[0]).type);
        break;
      case Opcode::shuffle:
        arguments(in, 2);
        want(at(in.args[0]).type, at(in.args[1]).type, "an operand of shuffle");
        want(in.type, {at(in.args[0]).type.scalar, static_cast<int>(in.lanes.size())}, "a shuffle");
        for (const int lane : in.lanes)
          require(lane >= 0 && lane < 2 * at(in.args[0]).type.lanes, "lanes", "lane {} of a shuffle", lane);
        break;
      case Opcode::load:
      case Opcode::load_strided:
        arguments(in, in.op == Opcode::load ? 1 : 2);
        for (const ValueId arg : in.args) want(at(arg).type, index, "an index");
        memory(in);
        break;
      case Opcode::gather:
        arguments(in, 1);
        want(at(in.args[0]).type, {i64, lanes}, "the index of gather");
        memory(in);
        break;
      case Opcode::get:
        scope_.require_var(static_cast<VarId>(in.integer));
        want(in.type, kernel_.vars[in.integer].type, "the value of a variable");
        break;
      case Opcode::intrinsic: machine(in); break;
    }
  }

  void machine(const Instruction& in) const {
    verify_operands(kernel_, in);
    const IntrinsicRecord& record = *record_of(in);
    for (const IntrinsicBuffer& operand : in.machine->buffers) {
      if (operand.access != Access::read) buffer(operand.id, true);
      if (operand.access != Access::write) buffer(operand.id, false);
    }
    for (const ValueId arg : in.args) use(arg);
    for (const VarId id : in.machine->vars) {
      scope_.require_var(id);
      if (record.sums == OfSums::adds_later) scope_.require_own_iteration(id, independent_);
    }
    const IntrinsicContext around = context();
    record.verify({{kernel_, around}, in});
  }

  IntrinsicContext context() const { return {threads_, warps_, conditional_, thread_loop_, regions_}; }

  void memory(const Instruction& in) const {
    want({buffer(in.buffer, false).dtype, in.type.lanes}, in.type, "a load");
    mask(in.mask, in.type.lanes);
    alignment(in.alignment);
  }

  void alignment(int bytes) const {
    require(bytes == 0 || (bytes > 0 && std::has_single_bit(static_cast<unsigned>(bytes))), "alignment",
            "an alignment of {}", bytes);
  }

  void statement(const Store& s) {
    const BufferInfo& info = buffer(s.buffer, true);
    const Type type = use(s.value);
    want({info.dtype, type.lanes}, type, "a store");
    want(use(s.index), {i64, s.kind == StoreKind::scatter ? type.lanes : 1}, "the index of a store");
    if (s.kind == StoreKind::strided) want(use(s.stride), {i64, 1}, "the stride of a store");
    mask(s.mask, type.lanes);
    alignment(s.alignment);
    require(!s.streams || (s.kind == StoreKind::contiguous && s.mask == none), "streams",
            "a stream of less than a whole vector");
  }

  void statement(const Prefetch& s) const {
    require(s.buffer >= 0 && s.buffer < kernel_.parameter_count(), "prefetch_buffer",
            "a prefetch of what is no parameter");
    want(use(s.index), {i64, 1}, "the index of a prefetch");
  }

  void statement(const SetVar& s) {
    if (s.declares) scope_.declare(s.var, independent_);
    scope_.require_var(s.var);
    scope_.require_own_iteration(s.var, independent_);
    want(use(s.value), kernel_.vars[s.var].type, "the value set");
  }

  void statement(const Alloc& s) {
    const BufferInfo& info = scope_.allocate(s.buffer);
    require(info.count <= (1 << 20), "scratch_size", "{} has {} elements", info.name, info.count);
    require(info.space != Space::shared || threads_ == 0, "shared_context", "shared {} inside a thread loop",
            info.name);
    if (info.space != Space::shared)
      scratch_bytes_ += static_cast<std::int64_t>(size_in_bytes(info.dtype)) * info.count;
  }

  void statement(const Barrier&) const {
    require(threads_ > 0, "barrier_context", "a barrier outside the thread loops");
    require(conditional_ == 0, "barrier_context", "a barrier in a branch");
  }

  void statement(const Check& s) const {
    want(use(s.condition), {boolean, 1}, "the condition of a check");
    require(s.code > 0, "check_code", "the code {}", s.code);
  }

  void statement(const Loop& s) {
    for (const ValueId bound : {s.lo, s.hi, s.step}) want(use(bound), {i64, 1}, "a loop bound");
    require(s.kind != LoopKind::parallel || depth_ == 1, "parallel_context",
            "a parallel loop inside another statement");
    verify_loop(kernel_, s);
    const bool thread = s.kind >= LoopKind::thread_x;
    const bool block_loop = s.kind >= LoopKind::block_x && !thread;
    require(!block_loop || threads_ == 0, "loop_nesting", "a {} loop inside a thread loop", kernel::name(s.kind));
    const bool independent = s.kind != LoopKind::serial && s.kind != LoopKind::unroll;
    const bool warps = is_whole_warps(kernel_, s);
    threads_ += thread;
    warps_ += warps;
    independent_ += independent;
    const Loop* const outer = std::exchange(thread_loop_, thread ? &s : thread_loop_);
    scope_.define(s.index);
    block(s.body);
    thread_loop_ = outer;
    independent_ -= independent;
    warps_ -= warps;
    threads_ -= thread;
    scope_.forget_last();
  }

  void statement(const IntrinsicRegion& s) {
    verify_parts(kernel_, s);
    const IntrinsicContext around = context();
    s.record->verify_place({{kernel_, around}, s});
    if (s.index != none) {
      scope_.define(s.index);
      require(at(s.index).op == Opcode::loop_index && at(s.index).type == Type{i64, 1}, "loop_index",
              "value {} is no {}", s.index, s.record->index);
    }
    for (std::size_t i = 0; i < s.bodies.size(); ++i) {
      regions_.push_back({s.record, i});
      block(s.bodies[i]);
      regions_.pop_back();
    }
    if (s.index != none) scope_.forget_last();
    const IntrinsicContext after = context();
    s.record->verify_bodies({{kernel_, after}, s});
  }

  void statement(const Branch& s) {
    want(use(s.condition), {boolean, 1}, "the condition of a branch");
    ++conditional_;
    block(s.then_block);
    block(s.else_block);
    --conditional_;
  }

  const Kernel& kernel_;
  Definitions scope_;
  std::int64_t scratch_bytes_ = 0;
  int depth_ = 0, threads_ = 0, conditional_ = 0;
  int warps_ = 0;                      // enclosing thread.x loops of whole warps
  int independent_ = 0;                // enclosing loops whose iterations are independent
  const Loop* thread_loop_ = nullptr;  // innermost
  std::vector<RegionBody> regions_;    // enclosing bodies, outermost first
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace lathe::kernel
