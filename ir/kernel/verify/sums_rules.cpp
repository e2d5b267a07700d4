#include "ir/kernel/verify/sums_rules.h"

#include <algorithm>
#include <limits>

#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {

/// By variable: the smallest number of groups that have ended, on any path, since a matmul into it started, up to a
/// limit; `idle` if none may be in flight.
using Ages = std::vector<int>;
constexpr int idle = std::numeric_limits<int>::max();

class Sums {
 public:
  /// For statements in this number of regions.
  explicit Sums(const Kernel& kernel, int regions = 0)
      : kernel_(kernel), ages_(kernel.vars.size(), idle), regions_(regions) {}

  void block(const Block& statements) {
    for (const Statement& s : statements)
      std::visit(Overloaded{[&](const Compute& c) { compute(kernel_.values[c.value]); },
                            [&](const SetVar& v) { use(v.var, "set"); }, [&](const Loop& l) { loop(l.body); },
                            [&](const Branch& b) {
                              const Ages before = ages_;
                              block(b.then_block);
                              const Ages then = std::exchange(ages_, before);
                              block(b.else_block);
                              join(then);
                            },
                            [&](const IntrinsicRegion& r) { region(r); }, [](const auto&) {}},
                 s.node);
  }

  bool any() const {
    return std::any_of(ages_.begin(), ages_.end(), [](int age) { return age != idle; });
  }

 private:
  void compute(const Instruction& in) {
    if (in.op == Opcode::get) use(static_cast<VarId>(in.integer), "read");
    const IntrinsicRecord* record = record_of(in);
    if (!record || record->sums == OfSums::nothing) return;
    if (record->sums == OfSums::adds_later) {
      adds_ = record->name;
      for (const VarId var : in.machine->vars) ages_[var] = 0;
      return;
    }
    const bool waits = record->sums == OfSums::waits;
    if (!waits || in.machine->attributes[1] != 0)
      for (int& age : ages_)
        if (age != idle) age = std::min(age + 1, most_sum_groups);
    if (!waits) return;
    const auto left = in.machine->attributes[0];
    for (const VarId var : in.machine->vars) {
      require(kernel_, ages_[var] > left, "sums_under_way",
              "a {} that leaves {} groups does not wait for variable {}", record->name, left, var);
      ages_[var] = idle;
    }
  }

  void use(VarId var, std::string_view how) const {
    require(kernel_, ages_[var] == idle, "sums_under_way", "variable {} is {} while a {} may be adding to it", var,
            how, adds_);
  }

  void join(const Ages& other) {
    for (std::size_t i = 0; i < other.size(); ++i) ages_[i] = std::min(ages_[i], other[i]);
  }

  /// Iterates to a fixed point: matmuls in flight at the end of an iteration are in flight in the next.
  void loop(const Block& body) {
    for (;;) {
      const Ages before = ages_;
      block(body);
      join(before);
      if (ages_ == before) return;
    }
  }

  void region(const IntrinsicRegion& r) {
    ++regions_;
    for (const Block& body : r.bodies) block(body);
    const bool may_leave = --regions_ > 0;
    require(kernel_, may_leave || !any(), "sums_under_way", "a {} ends while a {} is under way", r.record->name,
            adds_);
  }

  const Kernel& kernel_;
  Ages ages_;
  std::string_view adds_;  // the name of the operation that adds to variables
  int regions_;            // enclosing regions
};

/// Checks stores to operands of operations that add later: before the regions, or in a body that allows it, to memory
/// that no operation copies to (mma_operands).
class OperandStores {
 public:
  explicit OperandStores(const Kernel& kernel)
      : kernel_(kernel), reader_(kernel.buffers.size()), copied_(kernel.buffers.size()) {
    for_each_statement(kernel.body, [&](const Statement& s) {
      const Instruction* in = intrinsic_operation(kernel, s);
      if (!in) return;
      for (const IntrinsicBuffer& buffer : in->machine->buffers) {
        if (record_of(*in)->sums == OfSums::adds_later) reader_[buffer.id] = record_of(*in)->name;
        if (buffer.access != Access::read) copied_[buffer.id] = true;
      }
    });
  }

  void verify(const Block& statements, const IntrinsicRegionRecord* region = nullptr, bool allowed = true) const {
    for (const Statement& s : statements) {
      if (const auto* store = std::get_if<Store>(&s.node))
        require(kernel_, !region || reader_[store->buffer].empty() || (allowed && !copied_[store->buffer]),
                "mma_operands", "a store to what a {} reads, in its {}", reader_[store->buffer],
                region ? region->name : std::string_view());
      if (const auto* inner = std::get_if<IntrinsicRegion>(&s.node)) {
        for (std::size_t i = 0; i < inner->bodies.size(); ++i)
          verify(inner->bodies[i], inner->record, inner->record->bodies[i].stores_operands);
      } else {
        for_each_block(s, [&](const Block& nested) { verify(nested, region, allowed); });
      }
    }
  }

 private:
  const Kernel& kernel_;
  std::vector<std::string_view> reader_;  // by buffer: the operation that reads it
  std::vector<bool> copied_;
};

}  // namespace

bool leaves_sums(const Kernel& kernel, const Block& statements) {
  Sums sums(kernel, 1);
  sums.block(statements);
  return sums.any();
}

void verify_sums(const Kernel& kernel) {
  Sums(kernel).block(kernel.body);
  OperandStores(kernel).verify(kernel.body);
}

}  // namespace lathe::kernel
