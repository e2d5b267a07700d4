#include "ir/kernel/verify/sums_rules.h"

#include <algorithm>

#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {

using Vars = std::vector<bool>;  // by variable: a matmul may be in flight

class Sums {
 public:
  explicit Sums(const Kernel& kernel) : kernel_(kernel), under_way_(kernel.vars.size()) {}

  void block(const Block& statements) {
    for (const Statement& s : statements)
      std::visit(Overloaded{[&](const Compute& c) { compute(kernel_.values[c.value]); },
                            [&](const SetVar& v) { use(v.var, "set"); }, [&](const Loop& l) { loop(l.body); },
                            [&](const Branch& b) {
                              const Vars before = under_way_;
                              block(b.then_block);
                              const Vars then = std::exchange(under_way_, before);
                              block(b.else_block);
                              join(then);
                            },
                            [&](const IntrinsicRegion& r) { region(r); }, [](const auto&) {}},
                 s.node);
  }

 private:
  void compute(const Instruction& in) {
    if (in.op == Opcode::get) use(static_cast<VarId>(in.integer), "read");
    const IntrinsicRecord* record = record_of(in);
    if (!record || record->sums == OfSums::nothing) return;
    const bool adds = record->sums == OfSums::adds_later;
    if (adds) adds_ = record->name;
    for (const VarId var : in.machine->vars) under_way_[var] = adds;
  }

  void use(VarId var, std::string_view how) const {
    require(kernel_, !under_way_[var], "sums_under_way", "variable {} is {} while a {} may be adding to it", var, how,
            adds_);
  }

  void join(const Vars& other) {
    for (std::size_t i = 0; i < other.size(); ++i) under_way_[i] = under_way_[i] || other[i];
  }

  /// Iterates to a fixed point: matmuls in flight at the end of an iteration are in flight in the next.
  void loop(const Block& body) {
    for (;;) {
      const Vars before = under_way_;
      block(body);
      join(before);
      if (under_way_ == before) return;
    }
  }

  void region(const IntrinsicRegion& r) {
    ++regions_;
    for (const Block& body : r.bodies) block(body);
    const bool may_leave = --regions_ > 0;
    require(kernel_, may_leave || std::none_of(under_way_.begin(), under_way_.end(), [](bool is) { return is; }),
            "sums_under_way", "a {} ends while a {} is under way", r.record->name, adds_);
  }

  const Kernel& kernel_;
  Vars under_way_;
  std::string_view adds_;  // the name of the operation that adds to variables
  int regions_ = 0;        // enclosing regions
};

}  // namespace

void verify_sums(const Kernel& kernel) {
  Sums(kernel).block(kernel.body);
  std::vector<std::string_view> reader(kernel.buffers.size());
  for_each_statement(kernel.body, [&](const Statement& s) {
    const Instruction* in = intrinsic_operation(kernel, s);
    if (!in || record_of(*in)->sums != OfSums::adds_later) return;
    for (const IntrinsicBuffer& buffer : in->machine->buffers) reader[buffer.id] = record_of(*in)->name;
  });
  for_each_statement(kernel.body, [&](const Statement& s) {
    const auto* region = std::get_if<IntrinsicRegion>(&s.node);
    if (!region) return;
    const auto verify_store = [&](const Statement& inside) {
      const auto* store = std::get_if<Store>(&inside.node);
      const std::string_view by = store ? reader[store->buffer] : std::string_view();
      require(kernel, by.empty(), "mma_operands", "a store to what a {} reads, in its {}", by, region->record->name);
    };
    for (const Block& body : region->bodies) for_each_statement(body, verify_store);
  });
}

}  // namespace lathe::kernel
