#include "ir/kernel/intrinsics/gpu/pipeline/pipeline_needs.h"

#include <algorithm>
#include <set>

#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

bool is_broadcast_to_producers(const Instruction& in) {
  const IntrinsicRecord* record = record_of(in);
  return record && record->together == Together::pipeline;
}

namespace {

class Wants {
 public:
  Wants(const Kernel& kernel, const Block& pipeline, RunBy threads)
      : kernel_(kernel), threads_(threads), wanted_(kernel.values.size()), in_own_(kernel.values.size()) {
    for_each_statement(pipeline, [&](const Statement& s) {
      if (const auto* compute = std::get_if<Compute>(&s.node)) in_pipeline_.push_back(compute->value);
    });
    vars_.resize(kernel.vars.size());
    path(pipeline);
    for (std::size_t before = 0; before != found_;) {  // a variable's value may need other variables
      before = found_;
      for (const SetVar* s : sets_)
        if (vars_[s->var]) want({s->value});
    }
    for_each_statement(pipeline, [&](const Statement& s) {
      const auto* set = std::get_if<SetVar>(&s.node);
      if (set && vars_[set->var] && !own_.contains(set->var) &&
          std::find(sets_.begin(), sets_.end(), set) == sets_.end())
        set_elsewhere_ = true;
    });
  }

  PipelineNeeds take() {
    PipelineNeeds needs{std::vector<bool>(wanted_.size()), std::move(vars_), set_elsewhere_};
    for (const ValueId id : in_pipeline_)
      if (wanted_[id] && !in_own_[id]) needs.values[id] = true;
    return needs;
  }

 private:
  void want(std::vector<ValueId> work) {
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (id == none || wanted_[id]) continue;
      wanted_[id] = true;
      ++found_;
      const Instruction& in = value(kernel_, id);
      if (in.op == Opcode::get) vars_[in.integer] = true;
      if (is_broadcast_to_producers(in)) continue;  // only the consumers compute its operand
      work.insert(work.end(), in.args.begin(), in.args.end());
      work.push_back(in.mask);
    }
  }

  void path(const Block& statements) {
    for (const Statement& s : statements) {
      if (const auto* set = std::get_if<SetVar>(&s.node)) sets_.push_back(set);
      if (!leads_to(s, threads_)) continue;
      if (const auto* loop = std::get_if<Loop>(&s.node)) {
        want({loop->lo, loop->hi, loop->step});
        path(loop->body);
      } else if (const auto* region = std::get_if<IntrinsicRegion>(&s.node)) {
        for (std::size_t i = 0; i < region->bodies.size(); ++i)
          if (region->record->bodies[i].run_by == threads_) own(region->bodies[i]);
      }
    }
  }

  /// Adds what the threads' own body needs.
  void own(const Block& statements) {
    for_each_statement(statements, [&](const Statement& s) {
      std::visit(
          Overloaded{[&](const Compute& c) {
                       want({c.value});
                       in_own_[c.value] = true;
                     },
                     [&](const SetVar& v) {
                       want({v.value});
                       own_.insert(v.var);
                     },
                     [&](const Store& to) { want({to.index, to.stride, to.value, to.mask}); },
                     [&](const Check& c) { want({c.condition}); }, [&](const Branch& b) { want({b.condition}); },
                     [&](const Loop& l) { want({l.lo, l.hi, l.step}); }, [](const auto&) {}},
          s.node);
    });
  }

  const Kernel& kernel_;
  RunBy threads_;
  std::vector<bool> wanted_, in_own_, vars_;
  std::vector<ValueId> in_pipeline_;
  std::vector<const SetVar*> sets_;  // on the path of loops that leads to their body
  std::set<VarId> own_;              // set in their body
  std::size_t found_ = 0;
  bool set_elsewhere_ = false;
};

}  // namespace

PipelineNeeds needs_of(const Kernel& kernel, const Block& pipeline, RunBy threads) {
  return Wants(kernel, pipeline, threads).take();
}

}  // namespace lathe::kernel
