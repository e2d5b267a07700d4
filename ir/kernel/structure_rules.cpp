#include "ir/kernel/structure_rules.h"

#include <algorithm>
#include <set>

#include "ir/kernel/machine/record.h"
#include "ir/kernel/rules.h"

namespace lathe::kernel {

namespace {

/// The bounds of the parallel loop are known from the dims alone.
void pure(const Kernel& kernel, ValueId bound) {
  std::vector<ValueId> work = {bound};
  std::set<ValueId> seen;
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    require(kernel, id >= 0 && id < static_cast<int>(kernel.values.size()), "value_range", "value {} does not exist",
            id);
    const Instruction& in = value(kernel, id);
    require(kernel, computes_alone(in) && in.op != Opcode::get && in.op != Opcode::loop_index, "parallel_bounds",
            "a bound of the parallel loop depends on a {}", name_of(in));
    work.insert(work.end(), in.args.begin(), in.args.end());
  }
}

void no_parameter_store(const Kernel& kernel, const Statement& statement) {
  const auto* store = std::get_if<Store>(&statement.node);
  if (!store) return;
  require(kernel,
          store->buffer >= 0 && store->buffer < static_cast<int>(kernel.buffers.size()) &&
              kernel.buffers[static_cast<std::size_t>(store->buffer)].space != Space::parameter,
          "setup_store", "a store to a parameter before the parallel loop");
}

/// The one pipeline in these statements, or null.
const StagePipeline* pipeline_of(const Kernel& kernel, const Block& statements) {
  const StagePipeline* found = nullptr;
  for_each_statement(statements, [&](const Statement& s) {
    const auto* pipeline = std::get_if<StagePipeline>(&s.node);
    require(kernel, !pipeline || !found, "pipeline_context", "two pipelines");
    if (pipeline) found = pipeline;
  });
  return found;
}

/// Values alone, loads, copies, and what other threads take part in, which another rule refuses.
bool fits_producer(const Instruction& in) {
  const MachineRecord* record = record_of(in);
  return !record || record->gives_value || record->fills != Fills::nothing;
}

void verify_producer(const Kernel& kernel, const StagePipeline& pipeline, const Stage& stage) {
  std::vector<bool> own(kernel.vars.size());
  for_each_statement(stage.produce, [&](const Statement& s) {
    const bool fits = std::visit(Overloaded{[&](const Compute& c) { return fits_producer(value(kernel, c.value)); },
                                            [](const Loop&) { return true; }, [](const Branch&) { return true; },
                                            [&](const SetVar& set) {
                                              if (set.declares) own[static_cast<std::size_t>(set.var)] = true;
                                              return bool(own[static_cast<std::size_t>(set.var)]);
                                            },
                                            [](const auto&) { return false; }},
                                 s.node);
    require(kernel, fits, "pipeline_producer", "a producer that does more than copy");
    const auto* compute = std::get_if<Compute>(&s.node);
    if (!compute) return;
    const Instruction& in = value(kernel, compute->value);
    require(kernel, !is_collective(in) && (in.op != Opcode::get || own[static_cast<std::size_t>(in.integer)]),
            "pipeline_producer", "a {} of a producer, which other threads take part in", name_of(in));
  });
  const ProducerNeeds needs = needs_of_producer(kernel, pipeline);
  for (std::size_t i = 0; i < needs.values.size(); ++i) {
    const Instruction& in = kernel.values[i];
    require(kernel, !needs.values[i] || computes_alone(in) || is_told_to_producers(in), "pipeline_producer",
            "a producer wants a {} of the consumers", name_of(in));
  }
  require(kernel, !needs.set_elsewhere, "pipeline_producer", "a producer wants a variable that consumers set");
}

/// Serial loops lead to the stage; gives it.
const Stage* stage_of(const Kernel& kernel, const Block& statements) {
  const Stage* found = nullptr;
  for (const Statement& s : statements) {
    if (!leads_to_stage(s)) continue;
    const auto* loop = std::get_if<Loop>(&s.node);
    const auto* stage = std::get_if<Stage>(&s.node);
    require(kernel, !found && (stage || (loop && loop->kind == LoopKind::serial)), "pipeline_stage",
            "a pipeline with several stages, or one that is not in serial loops");
    found = stage ? stage : stage_of(kernel, loop->body);
  }
  require(kernel, found != nullptr, "pipeline_stage", "a pipeline without a stage");
  return found;
}

void verify_pipeline(const Kernel& kernel, const Loop& loop, const StagePipeline& pipeline) {
  const std::int64_t threads = value(kernel, loop.hi).integer;
  require(kernel, pipeline.consumers > 0 && pipeline.consumers % warpgroup_threads == 0, "pipeline_threads",
          "a pipeline for {} of {} threads", pipeline.consumers, threads);
  require(kernel, pipeline.consumers < threads, "pipeline_threads", "a pipeline without a producer");
  require(kernel, pipeline.stages >= 2 && pipeline.stages <= 8, "pipeline_stage",
          "a multistage pipeline of {} stages", pipeline.stages);
  verify_producer(kernel, pipeline, *stage_of(kernel, pipeline.body));
}

class Wants {
 public:
  Wants(const Kernel& kernel, const StagePipeline& pipeline) : kernel_(kernel), wanted_(kernel.values.size()) {
    for_each_statement(pipeline.body, [&](const Statement& s) {
      if (const auto* compute = std::get_if<Compute>(&s.node)) in_pipeline_.push_back(compute->value);
    });
    vars_.resize(kernel.vars.size());
    path(pipeline.body);
    for (std::size_t before = 0; before != found_;) {  // what is set to variables may want further ones
      before = found_;
      for (const SetVar* s : sets_)
        if (vars_[static_cast<std::size_t>(s->var)]) want({s->value});
    }
    for_each_statement(pipeline.body, [&](const Statement& s) {
      const auto* set = std::get_if<SetVar>(&s.node);
      if (set && vars_[static_cast<std::size_t>(set->var)] && !own_.contains(set->var) &&
          std::find(sets_.begin(), sets_.end(), set) == sets_.end())
        set_elsewhere_ = true;
    });
  }

  ProducerNeeds take() {
    ProducerNeeds needs{std::vector<bool>(wanted_.size()), std::move(vars_), set_elsewhere_};
    for (const ValueId id : in_pipeline_)
      if (wanted_[static_cast<std::size_t>(id)] && !in_producer_[static_cast<std::size_t>(id)])
        needs.values[static_cast<std::size_t>(id)] = true;
    return needs;
  }

 private:
  void want(std::vector<ValueId> work) {
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (id == none || wanted_[static_cast<std::size_t>(id)]) continue;
      wanted_[static_cast<std::size_t>(id)] = true;
      ++found_;
      const Instruction& in = value(kernel_, id);
      if (in.op == Opcode::get) vars_[static_cast<std::size_t>(in.integer)] = true;
      if (is_told_to_producers(in)) continue;  // what consumers have
      work.insert(work.end(), in.args.begin(), in.args.end());
      work.push_back(in.mask);
    }
  }

  void path(const Block& statements) {
    for (const Statement& s : statements) {
      if (const auto* set = std::get_if<SetVar>(&s.node)) sets_.push_back(set);
      if (!leads_to_stage(s)) continue;
      if (const auto* loop = std::get_if<Loop>(&s.node)) {
        want({loop->lo, loop->hi, loop->step});
        path(loop->body);
      } else if (const auto* stage = std::get_if<Stage>(&s.node)) {
        fill(stage->produce);
      }
    }
  }

  void fill(const Block& statements) {
    in_producer_.resize(kernel_.values.size());
    for_each_statement(statements, [&](const Statement& s) {
      std::visit(Overloaded{[&](const Compute& c) {
                              want({c.value});
                              in_producer_[static_cast<std::size_t>(c.value)] = true;
                            },
                            [&](const SetVar& v) {
                              want({v.value});
                              own_.insert(v.var);
                            },
                            [&](const Branch& b) { want({b.condition}); },
                            [&](const Loop& l) { want({l.lo, l.hi, l.step}); }, [](const auto&) {}},
                 s.node);
    });
  }

  const Kernel& kernel_;
  std::vector<bool> wanted_, in_producer_, vars_;
  std::vector<ValueId> in_pipeline_;
  std::vector<const SetVar*> sets_;  // that stand beside the loops that lead to the stage
  std::set<VarId> own_;              // set by the fill itself
  std::size_t found_ = 0;
  bool set_elsewhere_ = false;
};

}  // namespace

void verify_parallel_loop(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const auto* loop = std::get_if<Loop>(&kernel.body[i].node);
    if (!loop || loop->kind != LoopKind::parallel) continue;
    require(kernel, i + 1 == kernel.body.size(), "parallel_last", "statements follow the parallel loop");
    for_each_statement({kernel.body.begin(), kernel.body.begin() + static_cast<std::ptrdiff_t>(i)},
                       [&](const Statement& s) { no_parameter_store(kernel, s); });
    for (const ValueId bound : {loop->lo, loop->hi, loop->step}) pure(kernel, bound);
  }
}

void verify_loop(const Kernel& kernel, const Loop& loop) {
  const Instruction& step = value(kernel, loop.step);
  require(kernel, step.op != Opcode::constant || step.integer > 0, "loop_step", "a step of {}", step.integer);
  require(kernel, loop.index >= 0 && loop.index < static_cast<int>(kernel.values.size()), "value_range",
          "value {} does not exist", loop.index);
  const Instruction& index = value(kernel, loop.index);
  require(kernel, index.op == Opcode::loop_index && index.type == Type{i64, 1}, "loop_index",
          "value {} is no loop index", loop.index);
  if (loop.kind != LoopKind::unroll) return;
  for (const ValueId bound : {loop.lo, loop.hi, loop.step})
    require(kernel, value(kernel, bound).op == Opcode::constant, "unroll_bounds",
            "an unrolled loop without constant bounds");
}

void verify_pipelines(const Kernel& kernel) {
  const StagePipeline* pipeline = pipeline_of(kernel, kernel.body);
  for_each_statement(kernel.body, [&](const Statement& s) {
    const auto* loop = std::get_if<Loop>(&s.node);
    const bool inside = loop && loop->kind >= LoopKind::thread_x && pipeline_of(kernel, loop->body);
    if (inside) {
      require(kernel, std::get_if<StagePipeline>(&loop->body.back().node) == pipeline, "pipeline_context",
              "a pipeline that is not the last statement of its thread loop");
      verify_pipeline(kernel, *loop, *pipeline);
    }
    require(kernel, pipeline || !std::holds_alternative<Stage>(s.node), "pipeline_stage",
            "a stage outside a pipeline");
  });
}

void for_each_statement(const Block& statements, const std::function<void(const Statement&)>& body) {
  for (const Statement& s : statements) {
    body(s);
    const auto inside = [&](const Block& block) { for_each_statement(block, body); };
    std::visit(Overloaded{[&](const Loop& l) { inside(l.body); },
                          [&](const Branch& b) { inside(b.then_block), inside(b.else_block); },
                          [&](const StagePipeline& r) { inside(r.body); },
                          [&](const Stage& t) { inside(t.produce), inside(t.consume); }, [](const auto&) {}},
               s.node);
  }
}

std::vector<ValueId> with_needs(const Kernel& kernel, ValueId value) {
  std::vector<ValueId> found;
  std::set<ValueId> done;
  std::vector<std::pair<ValueId, std::size_t>> open = {{value, 0}};  // and how many args have been looked at
  while (!open.empty()) {
    auto& [id, next] = open.back();
    const std::vector<ValueId>& args = kernel.values[static_cast<std::size_t>(id)].args;
    if (next < args.size()) {
      const ValueId arg = args[next++];
      if (!done.contains(arg)) open.emplace_back(arg, 0);
      continue;
    }
    if (done.insert(id).second) found.push_back(id);
    open.pop_back();
  }
  return found;
}

bool runs_together(const Kernel& kernel, const Loop& loop) {
  return std::any_of(loop.body.begin(), loop.body.end(), [&](const Statement& s) {
    const auto* inner = std::get_if<Loop>(&s.node);
    return inner ? runs_together(kernel, *inner) : kernel.is_collective(s);
  });
}

bool copies_by_all(const Kernel& kernel, const StagePipeline& pipeline) {
  bool found = false;
  for_each_statement(pipeline.body, [&](const Statement& s) {
    const MachineRecord* record = record_of(kernel, s);
    found = found || (record && record->fills == Fills::each_producer);
  });
  return found;
}

bool multiplies(const Kernel& kernel, const Block& statements) {
  bool found = false;
  for_each_statement(statements, [&](const Statement& s) {
    const MachineRecord* record = record_of(kernel, s);
    found = found || (record && record->sums == OfSums::adds_later);
  });
  return found;
}

bool is_told_to_producers(const Instruction& in) {
  const MachineRecord* record = record_of(in);
  return record && record->together == Together::pipeline;
}

bool leads_to_stage(const Statement& statement) {
  return std::visit(
      Overloaded{[](const Stage&) { return true; }, [](const Loop& l) { return leads_to_stage(l.body); },
                 [](const Branch& b) { return leads_to_stage(b.then_block) || leads_to_stage(b.else_block); },
                 [](const StagePipeline& r) { return leads_to_stage(r.body); }, [](const auto&) { return false; }},
      statement.node);
}

bool leads_to_stage(const Block& statements) {
  return std::any_of(statements.begin(), statements.end(), [](const Statement& s) { return leads_to_stage(s); });
}

ProducerNeeds needs_of_producer(const Kernel& kernel, const StagePipeline& pipeline) {
  return Wants(kernel, pipeline).take();
}

}  // namespace lathe::kernel
