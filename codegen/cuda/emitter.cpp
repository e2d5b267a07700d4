#include "codegen/cuda/emitter.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/access_text.h"
#include "codegen/cuda/expressions.h"
#include "codegen/cuda/index/index_text.h"
#include "codegen/cuda/intrinsics/hooks.h"
#include "codegen/cuda/mapping.h"
#include "codegen/cuda/names.h"
#include "codegen/cuda/phases/awaited_loads.h"
#include "codegen/cuda/phases/phase_text.h"
#include "codegen/cuda/prelude/prelude.h"
#include "codegen/cuda/uses.h"
#include "ir/kernel/phases.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::cuda {

using kernel::BufferId;
using kernel::BufferInfo;
using kernel::Instruction;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::none;
using kernel::Opcode;
using kernel::Space;
using kernel::ValueId;

namespace {

constexpr std::size_t longest_inlined = 60;
constexpr char axes[] = {'x', 'y', 'z'};

/// Where the blocks of a kernel run: as the blocks of the grid, or as those of a phase.
struct BlockPlace {
  std::string_view block = "blockIdx", thread = "threadIdx", barrier = "__syncthreads();";
};
constexpr BlockPlace in_grid{},
    in_phase{.block = "phase.block", .thread = "phase.thread", .barrier = "phase.barrier();"};

/// The index of a block or a thread along the axis of a loop: "threadIdx.x".
std::string axis_index(std::string_view indices, const kernel::Loop& s) {
  return fmt::format("{}.{}", indices, axes[axis_of(s.kind)]);
}

/// Whether one of the statements is that of a hook with IntrinsicHook::is_stage.
bool holds_stage(const Kernel& kernel, const kernel::Block& statements) {
  return std::ranges::any_of(statements, [&](const kernel::Statement& s) {
    const Instruction* in = kernel::intrinsic_operation(kernel, s);
    return in && hook_of(kernel, *in).is_stage;
  });
}

class Emitter : RegionText {
 public:
  Emitter(const Kernel& kernel, const GpuInfo& gpu, Indices indices)
      : kernel_(kernel),
        gpu_(gpu),
        mapping_(mapping_of(kernel, gpu)),
        accesses_(kernel),
        indices_(kernel, gpu, indices),
        inlined_(used_once(kernel)),
        summed_(summed_later(kernel)),
        awaited_(kernel) {
    values_.resize(kernel.values.size());
    vars_.resize(kernel.vars.size());
    for (const BufferInfo& buffer : kernel.buffers) buffers_.push_back(names_.take(buffer.name));
    for (const std::string& dim : kernel.dims) dims_.push_back(names_.take(dim));
    for (const kernel::TensorMap& map : kernel.maps)
      maps_.push_back(names_.take(kernel.buffers[at(map.from)].name + "_map"));
    for (ValueId id = 0; at(id) < kernel.values.size(); ++id) {
      if (info(id).op == Opcode::constant) values_[at(id)] = indices_.constant(id);
      if (info(id).op == Opcode::dim)
        values_[at(id)] = indices_.dim(id, dims_[at(static_cast<int>(info(id).integer))]);
    }
  }

  std::string run() {
    for (const std::string& note : kernel_.notes) line("// {}", comment_text(note));
    const int resident = resident_blocks(mapping_, gpu_);
    line("extern \"C\" __global__ void __launch_bounds__({}{})", mapping_.block_size(),
         resident > 0 ? fmt::format(", {}", resident) : "");
    line("{}({}) {{", symbol_of(kernel_), parameter_list(kernel_, phase_, buffers_, dims_, maps_));
    ++depth_;
    if (!kernel_.phase_kernels.empty())
      line("ResidentGrid grid(status + 1);");
    else if (mapping_.shared_bytes > gpu_.static_shared_bytes)
      line("extern __shared__ __align__({}) unsigned char shared_memory[];", mapping_.shared_alignment);
    block(kernel_.body);
    --depth_;
    line("}}");
    return std::move(out_);
  }

  /// Returns the function that runs the blocks of a phase of the kernel in a grid of blocks of `block_threads`
  /// threads. It waits for its own block first, whose threads may still use shared memory for an earlier phase.
  std::string phase_function(const std::string& symbol, const kernel::KernelPhase& phase, int block_threads) {
    const PhaseMapping mapping = phase_mapping(kernel_, gpu_, block_threads);
    place_ = &in_phase, phase_ = &phase;
    awaited_.set_phase(phase);
    for (const std::string& note : kernel_.notes) line("// {}", comment_text(note));
    line("LATHE_PHASE u32");
    line("{}({}, const u64 checks, const u32 first) {{", symbol,
         parameter_list(kernel_, phase_, buffers_, dims_, maps_));
    ++depth_;
    for (int i = 0; i < kernel_.parameter_count(); ++i) line("expect_global({});", buffers_[at(i)]);
    if (mapping.shared_bytes > 0) line("__syncthreads();");
    line("{};", phase_block_text(kernel_, mapping, block_threads, dims_));
    line("for (; phase.is_inside(); phase.advance()) {{");
    nested(kernel_.body);
    if (mapping.shared_bytes > 0) line("  {}", place_->barrier);
    line("}}");
    line("return phase.next(first);");
    --depth_;
    line("}}\n");
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    out_.append(2 * static_cast<std::size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  const Instruction& info(ValueId id) const { return kernel_.values[at(id)]; }
  bool is(ValueId id, std::int64_t n) const { return info(id).op == Opcode::constant && info(id).integer == n; }
  const Expression& value(ValueId id) const {
    LATHE_ASSERT(id != none && !values_[at(id)].text.empty());
    return values_[at(id)];
  }
  const std::string& text(ValueId id) const { return value(id).text; }

  /// The value in its own width, or in 32 bits as an index of shared memory.
  Expression int64(ValueId id) const { return indices_.int64(id, value(id)); }
  std::string int32(ValueId id) const { return indices_.int32(id, text(id)); }

  void block(const kernel::Block& statements) {
    for (const kernel::Statement& s : statements) {
      if (role_ && !role_->takes_part(s)) continue;
      if (awaited_.defers(s)) continue;
      if (awaited_.end_before(s)) settle();
      std::visit([this](const auto& node) { statement(node); }, s.node);
    }
    settle();
  }
  /// Emits the first part of an awaited load; the second one by settle().
  bool look(ValueId id) {
    const auto look = awaited_.is_awaited(info(id)) ? accesses_.look(info(id), Words(*this)) : std::nullopt;
    if (!look) return false;
    line("const auto v{} = {};", next_value_, look->words);
    awaited_.add({id, fmt::format(fmt::runtime(look->settled), fmt::format("v{}", next_value_++))});
    return true;
  }
  void settle() {
    for (const auto& [id, settled] : awaited_.take())
      settled.empty() ? statement(kernel::Compute{id}) : define(id, settled);
  }

  void nested(const kernel::Block& statements) {
    ++depth_;
    block(statements);
    --depth_;
  }

  void statement(const kernel::Compute& s) {
    if (info(s.value).type == kernel::no_value) return line("{};", intrinsic_text(s.value));
    if (look(s.value)) return;
    Expression e = compute(s.value);
    if (inlined_[at(s.value)] && e.text.size() <= longest_inlined) return void(values_[at(s.value)] = std::move(e));
    define(s.value, e.text);
  }

  void define(ValueId id, std::string_view expression) {
    values_[at(id)] = {fmt::format("v{}", next_value_++)};
    line("const {} {} = {};", indices_.type(id), text(id), expression);
  }

  /// Computes in 32 bits if all index operands and the result fit; otherwise in 64.
  Expression compute(ValueId id) {
    const Instruction& in = info(id);
    if (in.op == Opcode::get) return {vars_[in.integer]};
    if (in.buffer != none) return {accesses_.load(in, Words(*this))};
    const bool in_32 = indices_.computes_in_int32(id);
    const auto result = [&]() -> Expression {
      if (in.op == Opcode::intrinsic) return {intrinsic_text(id)};
      std::vector<Expression> args;
      for (const ValueId arg : in.args) args.push_back(in_32 ? value(arg) : int64(arg));
      return expression(kernel_, in, args, in_32);
    };
    return in_32 ? result() : indices_.narrowed(id, result());
  }

  /// The view of the kernel for an access, or for the hook of an intrinsic: `id`.
  class Words : public KernelText {
   public:
    explicit Words(const Emitter& emitter, ValueId id = none) : e_(emitter), id_(id) {}
    const Kernel& kernel() const override { return e_.kernel_; }
    std::string arg(std::size_t i) const override {
      const ValueId arg = e_.info(id_).args[i];
      return e_.indices_.computes_in_int32(id_) ? e_.text(arg) : e_.int64(arg).text;
    }
    std::string value(ValueId id) const override { return e_.text(id); }
    std::string int32(ValueId id) const override { return e_.int32(id); }
    const std::string& buffer(BufferId id) const override { return e_.buffers_[at(id)]; }
    const std::string& var(kernel::VarId id) const override { return e_.vars_[at(id)]; }
    const std::string& map(int number) const override { return e_.maps_[at(number)]; }
    const RegionRole* role() const override { return e_.role_; }

   private:
    const Emitter& e_;
    ValueId id_;
  };

  std::string intrinsic_text(ValueId id) const { return hook_of(kernel_, info(id)).text(info(id), Words(*this, id)); }

  void statement(const kernel::Store& s) { line("{};", accesses_.store(s, int64(s.value).text, Words(*this))); }

  void statement(const kernel::Prefetch& s) { line("prefetch({}, {});", buffers_[at(s.buffer)], text(s.index)); }

  void statement(const kernel::SetVar& s) {
    std::string& var = vars_[at(s.var)];
    if (s.declares) var = fmt::format("r{}", next_var_++);
    const std::string type = s.declares ? indices_.var_type(s.var) + " " : "";
    line("{}{} = {};", type, var, indices_.is_int32_var(s.var) ? text(s.value) : int64(s.value).text);
    if (summed_[at(s.var)]) line("touch({});", var);
  }

  void statement(const kernel::Alloc& s) {
    const BufferInfo& buffer = kernel_.buffers[at(s.buffer)];
    const std::string& own = buffers_[at(s.buffer)];
    if (buffer.space != Space::shared) return line("__align__(16) {} {}[{}];", name(buffer.dtype), own, buffer.count);
    const std::int64_t bytes = buffer.count * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
    shared(name(buffer.dtype), own, bytes, buffer.count, shared_alignment(kernel_, s.buffer), shared_used_);
  }

  void shared(std::string_view type, std::string_view own, std::int64_t bytes, std::int64_t count, int alignment,
              std::int64_t& used) {
    if (place_ == &in_phase)
      return line("{0}* const {1} = reinterpret_cast<{0}*>(phase.shared() + {2});", type, own,
                  allocate_shared(used, bytes, alignment));
    if (mapping_.shared_bytes <= gpu_.static_shared_bytes)
      return line("__shared__ __align__({}) {} {}[{}];", alignment, type, own, count);
    line("{0}* const {1} = reinterpret_cast<{0}*>(shared_memory + {2});", type, own,
         allocate_shared(used, bytes, alignment));
  }

  void statement(const kernel::IntrinsicRegion& s) { hook_of(kernel_, s).write(s, *this); }

  const Kernel& kernel() const override { return kernel_; }
  const GpuInfo& gpu() const override { return gpu_; }
  int block_threads() const override { return mapping_.threads[0]; }
  const RegionRole* role() const override { return role_; }
  void write(std::string_view text) override { line("{}", text); }
  void body(const kernel::Block& statements, const RegionRole& role) override {
    const RegionRole* const outer = std::exchange(role_, &role);
    nested(statements);
    role_ = outer;
  }
  std::string index(ValueId id) override {
    values_[at(id)] = {index_name(next_index_++)};
    return fmt::format("{} {}", indices_.scalar(id), text(id));
  }
  void shared_words(std::string_view name, std::int64_t words) override {
    shared("u64", name, words * std::int64_t{sizeof(std::uint64_t)}, words, 16, shared_used_);
  }

  void statement(const kernel::Barrier&) { line("{}", role_ ? role_->barrier() : std::string(place_->barrier)); }

  void statement(const kernel::Check& s) {
    line("check({}, {}{}, status);", text(s.condition), place_ == &in_phase ? "checks + " : "", s.code);
  }

  void statement(const kernel::Branch& s) {
    line("if ({}) {{", text(s.condition));
    nested(s.then_block);
    if (!s.else_block.empty()) {
      line("}} else {{");
      nested(s.else_block);
    }
    line("}}");
  }

  void statement(const kernel::Loop& s) {
    const std::string index = index_name(next_index_++);
    values_[at(s.index)] = {index};
    if (is_block(s.kind)) return block_loop(s, index);
    if (is_thread(s.kind)) {
      const bool all = constant_trip_count(kernel_, s) == mapping_.threads[axis_of(s.kind)];
      return mapped_loop(s, index, axis_index(place_->thread, s), all);
    }
    const bool holds_region = kernel::holds_region(s.body);
    if (indices_.runs_once(s) && !holds_region) {
      line("if (const {0} {1} = {2}; {1} < {3}) {{", indices_.scalar(s.index), index, text(s.lo), text(s.hi));
      nested(s.body);
      return line("}}");
    }
    if (s.kind == LoopKind::unroll) line("#pragma unroll");
    if (s.kind == LoopKind::serial &&
        (holds_stage(kernel_, s.body) || holds_region || (role_ && role_->keeps_loops())))
      line("#pragma unroll 1");
    const std::string step = is(s.step, 1) ? "++" + index : fmt::format("{} += {}", index, text(s.step));
    line("for ({4} {0} = {1}; {0} < {2}; {3}) {{", index, text(s.lo), text(s.hi), step, indices_.scalar(s.index));
    nested(s.body);
    line("}}");
  }

  void block_loop(const kernel::Loop& s, const std::string& index) {
    if (mapping_.started == none) return mapped_loop(s, index, axis_index(place_->block, s), false);
    std::int64_t at_end = mapping_.block_number;
    shared("u64", "block_number", sizeof(std::uint64_t), 1, 16, at_end);
    const std::string number = fmt::format("next_block({}, block_number)", buffers_[at(mapping_.started)]);
    mapped_loop(s, index, number, false);
  }

  /// One iteration per block or thread; those beyond the bound are idle.
  void mapped_loop(const kernel::Loop& s, const std::string& index, std::string_view machine, bool all_inside) {
    std::string first = fmt::format("{}({})", indices_.scalar(s.index), machine);
    if (!is(s.step, 1))
      first = fmt::format("{} * {}", first, value(s.step).operation ? "(" + text(s.step) + ")" : text(s.step));
    if (!is(s.lo, 0)) first = fmt::format("{} + {}", text(s.lo), first);
    if (all_inside) {
      line("{{");
    } else {
      line("if (const {3} {0} = {1}; {0} < {2}) {{", index, first, text(s.hi), indices_.scalar(s.index));
    }
    ++depth_;
    if (all_inside) line("const {} {} = {};", indices_.scalar(s.index), index, first);
    block(s.body);
    --depth_;
    line("}}");
  }

  const Kernel& kernel_;
  const GpuInfo& gpu_;
  Mapping mapping_;
  AccessText accesses_;
  IndexText indices_;
  std::vector<bool> inlined_;  // by value
  std::vector<bool> summed_;   // by variable: accumulated by an intrinsic
  UniqueNames names_;
  std::vector<Expression> values_;
  std::vector<std::string> vars_, buffers_, dims_, maps_;
  std::string out_;
  const BlockPlace* place_ = &in_grid;
  const kernel::KernelPhase* phase_ = nullptr;  // null: a kernel of its own
  const RegionRole* role_ = nullptr;            // of the enclosing region
  AwaitedLoads awaited_;
  std::int64_t shared_used_ = 0;
  int next_value_ = 0, next_var_ = 0, next_index_ = 0, depth_ = 0;
};

}  // namespace

std::string emit(const Kernel& kernel, const GpuInfo& gpu, Indices indices) {
  std::string text = fmt::format("#include \"{}\"\n\nnamespace lathe {{\n\n", prelude_name);
  const int block_threads = mapping_of(kernel, gpu).block_size();
  std::map<std::pair<int, std::uint64_t>, kernel::KernelPhase> functions;
  for (const kernel::KernelPhase& phase : kernel::phases_of(kernel)) functions[{phase.kernel, phase.awaited}] = phase;
  for (const auto& [key, phase] : functions)
    text += Emitter(*kernel.phase_kernels[static_cast<std::size_t>(phase.kernel)], gpu, indices)
                .phase_function(phase_symbol(kernel, phase), phase, block_threads);
  // A kernel of phases only passes dims on, in 64 bits.
  text += Emitter(kernel, gpu, kernel.phase_kernels.empty() ? indices : Indices::int64).run();
  return text + "\n}  // namespace lathe\n";
}

std::string symbol_of(const Kernel& kernel) { return UniqueNames().take(kernel.name); }

}  // namespace lathe::cuda
