#include "models/text/template/syntax/symbols.h"

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

}  // namespace lathe::jinja
