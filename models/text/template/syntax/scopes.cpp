#include "models/text/template/syntax/scopes.h"

#include <fmt/core.h>

#include "models/text/template/syntax/ast.h"

namespace lathe::jinja {

Symbols Symbols::way_through(Symbols& scope) {
  Symbols way(scope.outer_, *scope.layout_);
  way.scope_ = &scope;
  return way;
}

bool Symbols::knows_itself(const std::string& name) const {
  return entries_.contains(name) || (scope_ && scope_->knows_itself(name));
}

bool Symbols::stores(const std::string& name) const {
  return stores_.contains(name) || (scope_ && scope_->stores(name));
}

Symbols::Entry* Symbols::find(const std::string& name) {
  for (Symbols* scope = this; scope; scope = scope->scope_ ? scope->scope_ : scope->outer_)
    if (const auto at = scope->entries_.find(name); at != scope->entries_.end()) return &at->second;
  return nullptr;
}

Symbols::Entry& Symbols::define(const std::string& name, Load::From from) {
  Entry& entry = entries_[name];
  entry = {from, layout_->slot(level_, name), layout_, false};
  return entry;
}

void Symbols::load(const std::string& name) {
  if (!find(name)) define(name, Load::From::inputs);
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (knows_itself(name)) return;
  define(name, outer_ && outer_->find(name) ? Load::From::outer : Load::From::nothing);
}

int Symbols::declare(const std::string& name) {
  stores_.insert(name);
  return define(name, Load::From::argument).index;
}

void Symbols::merge(const std::vector<Symbols>& ways) {
  std::set<std::string> assigned;
  for (const Symbols& way : ways) {
    for (const auto& [name, entry] : way.entries_) entries_[name] = entry;
    for (const std::string& name : way.stores_)
      if (!stores(name)) assigned.insert(name);
  }
  for (const std::string& name : assigned) {
    find(name)->from = outer_ && outer_->find(name) ? Load::From::outer : Load::From::inputs;
    stores_.insert(name);
  }
}

Slot Symbols::slot(const std::string& name, const FrameLayout& layout) {
  Entry* entry = find(name);
  entry->read = true;
  return {layout.depth() - entry->layout->depth(), entry->index};
}

void Symbols::mark_read(const std::string& name) {
  if (Entry* entry = find(name)) entry->read = true;
}

Scope Symbols::scope() const {
  Scope loads;
  for (const auto& [name, entry] : entries_) {
    Load load{.from = entry.from, .index = entry.index, .name = name, .outer = {}};
    if (entry.from == Load::From::outer) load.outer = outer_->slot(name, *layout_);
    loads.push_back(std::move(load));
  }
  return loads;
}

namespace {

/// Records the variables that the statements of a scope read and assign, without visiting nested scopes.
class Analyzer {
 public:
  explicit Analyzer(Symbols& symbols) : symbols_(symbols) {}

  void expression(Expr& expr) const {
    if (const auto* name = std::get_if<Name>(&expr.node)) symbols_.load(name->name);
    for_each_child(expr, [&](Expr& child) { expression(child); });
  }
  void optional(const ExprPtr& expr) const {
    if (expr) expression(*expr);
  }
  void target(const Target& target, bool argument) const {
    for (const Target& item : target.items) this->target(item, argument);
    if (!target.items.empty()) return;
    if (!target.attribute.empty()) return symbols_.load(target.name.name);
    if (argument)
      symbols_.declare(target.name.name);
    else
      symbols_.store(target.name.name);
  }
  void block(Block& block) const {
    for (Statement& statement : block) std::visit([&](auto& node) { this->node(node); }, statement.node);
  }

 private:
  void node(TextStatement&) const {}
  void node(Break&) const {}
  void node(Continue&) const {}
  void node(Generation&) const {}
  void node(Print& print) const { expression(*print.value); }
  void node(For& loop) const { expression(*loop.iterable); }
  void node(Macro& macro) const { symbols_.store(macro.macro->name); }
  void node(CallBlock& call) const { expression(*call.call); }
  void node(FilterBlock& block) const { expression(*block.filters); }
  void node(Set& set) const {
    expression(*set.value);
    target(set.target, false);
  }
  void node(SetBlock& set) const {
    optional(set.filters);
    target(set.target, false);
  }
  void node(With& with) const {
    for (auto& [target, value] : with.assignments) expression(*value);
  }
  void node(If& branches) const {
    expression(*branches.branches.front().first);
    std::vector<Symbols> ways;
    ways.push_back(look_through(branches.branches.front().second));
    // All other branches with their conditions are treated as one path.
    Symbols others = Symbols::way_through(symbols_);
    for (std::size_t i = 1; i < branches.branches.size(); ++i) {
      auto& [test, body] = branches.branches[i];
      const Analyzer inner(others);
      inner.expression(*test);
      others.merge({inner.look_through(body)});
    }
    ways.push_back(std::move(others));
    ways.push_back(look_through(branches.otherwise));
    symbols_.merge(ways);
  }
  Symbols look_through(Block& body) const {
    Symbols way = Symbols::way_through(symbols_);
    Analyzer(way).block(body);
    return way;
  }

  Symbols& symbols_;
};

/// Writes slots into the syntax tree.
class Binder {
 public:
  explicit Binder(const Source& source) : source_(source) {}

  void program(Program& program) const {
    FrameLayout layout(nullptr);
    Symbols symbols(nullptr, layout);
    Analyzer(symbols).block(program.main.body);
    block(program.main.body, symbols, false);
    program.main.scope = symbols.scope();
    program.main.size = layout.size();
  }

 private:
  /// `soft`: inside {% if %}, where unknown filters and tests are allowed.
  void block(Block& block, Symbols& symbols, bool soft) const {
    for (Statement& statement : block)
      std::visit([&](auto& node) { this->node(node, symbols, soft); }, statement.node);
  }

  void expression(Expr& expr, Symbols& symbols, bool soft) const {
    if (auto* name = std::get_if<Name>(&expr.node)) name->slot = symbols.slot(name->name, symbols.layout());
    if (const auto* use = std::get_if<FilterUse>(&expr.node); use && !use->entry && !soft)
      source_.fail(expr.extent.begin, fmt::format("No filter named '{}'.", use->name));
    if (const auto* use = std::get_if<TestUse>(&expr.node); use && !use->entry && !soft)
      source_.fail(expr.extent.begin, fmt::format("No test named '{}'.", use->name));
    const bool below = soft || std::holds_alternative<Conditional>(expr.node);
    for_each_child(expr, [&](Expr& child) { expression(child, symbols, below); });
  }

  void target(Target& target, Symbols& symbols) const {
    for (Target& item : target.items) this->target(item, symbols);
    if (target.items.empty()) target.name.slot = symbols.slot(target.name.name, symbols.layout());
  }

  void node(TextStatement&, Symbols&, bool) const {}
  void node(Break&, Symbols&, bool) const {}
  void node(Continue&, Symbols&, bool) const {}
  void node(Print& print, Symbols& symbols, bool soft) const { expression(*print.value, symbols, soft); }

  void node(If& branches, Symbols& symbols, bool) const {
    for (auto& [test, body] : branches.branches) {
      expression(*test, symbols, true);
      block(body, symbols, true);
    }
    block(branches.otherwise, symbols, true);
  }

  void node(Set& set, Symbols& symbols, bool soft) const {
    expression(*set.value, symbols, soft);
    target(set.target, symbols);
  }

  void node(SetBlock& set, Symbols& symbols, bool) const {
    set.scope = inner_block(set.body, symbols);
    if (set.filters) expression(*set.filters, symbols, false);
    target(set.target, symbols);
  }

  Scope inner_block(Block& body, Symbols& symbols) const {
    Symbols inner(&symbols, symbols.layout());
    Analyzer(inner).block(body);
    block(body, inner, false);
    return inner.scope();
  }

  void node(FilterBlock& filter, Symbols& symbols, bool) const {
    Symbols inner(&symbols, symbols.layout());
    const Analyzer analyzer(inner);
    analyzer.expression(*filter.filters);
    analyzer.block(filter.body);
    block(filter.body, inner, false);
    expression(*filter.filters, inner, false);
    filter.scope = inner.scope();
  }

  void node(With& with, Symbols& symbols, bool soft) const {
    Symbols inner(&symbols, symbols.layout());
    for (auto& [target, value] : with.assignments) {
      expression(*value, symbols, soft);
      Analyzer(inner).target(target, true);
    }
    Analyzer(inner).block(with.body);
    for (auto& [target, value] : with.assignments) this->target(target, inner);
    block(with.body, inner, false);
    with.scope = inner.scope();
  }

  void node(For& loop, Symbols& symbols, bool soft) const {
    expression(*loop.iterable, symbols, soft);
    if (loop.condition) bind_condition(loop, symbols);
    Symbols body(&symbols, symbols.layout());
    body.declare("loop");
    Analyzer(body).target(loop.target, true);
    Analyzer(body).block(loop.body);
    target(loop.target, body);
    loop.loop = body.slot("loop", body.layout());
    check_loop_is_not_assigned(loop.target);
    check_loop_is_not_assigned(loop.body);
    block(loop.body, body, false);
    loop.scope = body.scope();
    loop.otherwise_scope = inner_block(loop.otherwise, symbols);
  }

  void bind_condition(For& loop, Symbols& symbols) const {
    FrameLayout layout(&symbols.layout());
    Symbols inner(&symbols, layout);
    loop.filter_target = loop.target;
    const Analyzer analyzer(inner);
    analyzer.target(loop.filter_target, true);
    analyzer.expression(*loop.condition);
    target(loop.filter_target, inner);
    expression(*loop.condition, inner, false);
    loop.filter.scope = inner.scope();
    loop.filter.size = layout.size();
  }

  void check_loop_is_not_assigned(const Target& target) const {
    for (const Target& item : target.items) check_loop_is_not_assigned(item);
    if (target.items.empty() && target.attribute.empty() && target.name.name == "loop")
      source_.fail(target.extent.begin, "Can't assign to special loop variable in for-loop target");
  }

  void check_loop_is_not_assigned(const Block& block) const {
    for (const Statement& statement : block) {
      if (const auto* set = std::get_if<Set>(&statement.node)) check_loop_is_not_assigned(set->target);
      if (const auto* set = std::get_if<SetBlock>(&statement.node)) check_loop_is_not_assigned(set->target);
      if (const auto* branches = std::get_if<If>(&statement.node)) {
        for (const auto& [test, body] : branches->branches) check_loop_is_not_assigned(body);
        check_loop_is_not_assigned(branches->otherwise);
      }
    }
  }

  void node(Macro& macro, Symbols& symbols, bool) const {
    function(*macro.macro, symbols);
    macro.slot = symbols.slot(macro.macro->name, symbols.layout());
  }

  void node(CallBlock& call, Symbols& symbols, bool soft) const {
    function(*call.macro, symbols);
    expression(*call.call, symbols, soft);
  }

  void node(Generation& generation, Symbols& symbols, bool) const { function(*generation.macro, symbols); }

  void function(MacroDef& macro, Symbols& symbols) const {
    FrameLayout layout(&symbols.layout());
    Symbols inner(&symbols, layout);
    const Analyzer analyzer(inner);
    for (const Parameter& parameter : macro.parameters) inner.declare(parameter.name.name);
    // Every macro has these, unless it has parameters with these names.
    const std::pair<const char*, int*> special[] = {
        {"caller", &macro.caller}, {"kwargs", &macro.kwargs}, {"varargs", &macro.varargs}};
    for (const auto& [name, index] : special)
      if (!inner.knows_itself(name)) *index = inner.declare(name);
    for (const Parameter& parameter : macro.parameters) analyzer.optional(parameter.initial);
    analyzer.block(macro.function.body);
    for (Parameter& parameter : macro.parameters) {
      parameter.name.slot = inner.slot(parameter.name.name, layout);
      if (parameter.initial) expression(*parameter.initial, inner, false);
    }
    block(macro.function.body, inner, false);
    // A macro accepts the special variables that it or a nested macro reads.
    for (const auto& [name, index] : special) {
      if (!inner.is_read(name))
        *index = -1;
      else
        symbols.mark_read(name);
    }
    macro.function.scope = inner.scope();
    macro.function.size = layout.size();
  }

  const Source& source_;
};

}  // namespace

void bind_variables(Program& program) { Binder(program.source).program(program); }

}  // namespace lathe::jinja
