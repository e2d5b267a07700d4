#include "ir/kernel/sums_rules.h"

#include <algorithm>

#include "ir/kernel/machine_rules.h"
#include "ir/kernel/structure_rules.h"

namespace lathe::kernel {

namespace {

using Vars = std::vector<bool>;  // by variable: a product may be under way

class Sums {
 public:
  explicit Sums(const Kernel& kernel) : kernel_(kernel), under_way_(kernel.vars.size()) {}

  void block(const Block& statements) {
    for (const Statement& s : statements)
      std::visit(Overloaded{[&](const Compute& c) { compute(kernel_.values[static_cast<std::size_t>(c.value)]); },
                            [&](const SetVar& v) { use(v.var, "set"); },
                            [&](const Wgmma& m) { under_way_[static_cast<std::size_t>(m.sums)] = true; },
                            [&](const WaitSums& w) {
                              for (const VarId var : w.sums) under_way_[static_cast<std::size_t>(var)] = false;
                            },
                            [&](const Loop& l) { loop(l.body); },
                            [&](const Branch& b) {
                              const Vars before = under_way_;
                              block(b.then_block);
                              const Vars then = std::exchange(under_way_, before);
                              block(b.else_block);
                              join(then);
                            },
                            [&](const StagePipeline& r) { pipeline(r); }, [&](const Stage& t) { block(t.consume); },
                            [](const auto&) {}},
                 s.node);
  }

 private:
  void compute(const Instruction& in) const {
    if (in.op == Opcode::get) use(static_cast<VarId>(in.integer), "read");
  }

  void use(VarId var, std::string_view how) const {
    require(kernel_, !under_way_[static_cast<std::size_t>(var)], "sums_under_way",
            "variable {} is {} while a wgmma may be adding to it", var, how);
  }

  void join(const Vars& other) {
    for (std::size_t i = 0; i < other.size(); ++i) under_way_[i] = under_way_[i] || other[i];
  }

  /// What an iteration leaves under way is so in the next one.
  void loop(const Block& body) {
    for (;;) {
      const Vars before = under_way_;
      block(body);
      join(before);
      if (under_way_ == before) return;
    }
  }

  void pipeline(const StagePipeline& r) {
    block(r.body);
    require(kernel_, std::none_of(under_way_.begin(), under_way_.end(), [](bool is) { return is; }), "sums_under_way",
            "a pipeline ends while a wgmma is under way");
  }

  const Kernel& kernel_;
  Vars under_way_;
};

}  // namespace

void verify_sums(const Kernel& kernel) {
  Sums(kernel).block(kernel.body);
  std::vector<bool> operand(kernel.buffers.size());
  for_each_statement(kernel.body, [&](const Statement& s) {
    const auto* product = std::get_if<Wgmma>(&s.node);
    if (!product) return;
    for (const MatrixTile& tile : {product->left, product->right})
      if (tile.buffer != none) operand[static_cast<std::size_t>(tile.buffer)] = true;
  });
  for_each_statement(kernel.body, [&](const Statement& s) {
    const auto* pipeline = std::get_if<StagePipeline>(&s.node);
    if (!pipeline) return;
    for_each_statement(pipeline->body, [&](const Statement& inside) {
      const auto* store = std::get_if<Store>(&inside.node);
      require(kernel, !store || !operand[static_cast<std::size_t>(store->buffer)], "mma_operands",
              "a store to what a wgmma reads, in its pipeline");
    });
  });
}

}  // namespace lathe::kernel
