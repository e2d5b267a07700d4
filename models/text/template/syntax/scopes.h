#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "models/text/template/syntax/ast.h"

namespace lathe::jinja {

/// Frame slots of one function: one slot for each name at each scope level.
class FrameLayout {
 public:
  explicit FrameLayout(const FrameLayout* outer) : depth_(outer ? outer->depth_ + 1 : 0) {}
  int slot(int level, const std::string& name) {
    return slots_.emplace(std::pair(level, name), static_cast<int>(slots_.size())).first->second;
  }
  int depth() const { return depth_; }
  int size() const { return static_cast<int>(slots_.size()); }

 private:
  int depth_;
  std::map<std::pair<int, std::string>, int> slots_;
};

/// Variables of one scope during its analysis.
class Symbols {
 public:
  Symbols(Symbols* outer, FrameLayout& layout)
      : outer_(outer), layout_(&layout), level_(outer ? outer->level_ + 1 : 0) {}
  /// Returns one path through `scope`, which must outlive it. merge() adds its entries to `scope`.
  static Symbols way_through(Symbols& scope);

  /// Records that the scope reads `name`.
  void load(const std::string& name);
  /// Records that the scope assigns `name`.
  void store(const std::string& name);
  /// Declares `name` as set by the construct that enters the scope. Returns its index in the frame.
  int declare(const std::string& name);
  /// Merges alternative paths through the scope, one of which runs. Variables that a path assigns may be assigned.
  void merge(const std::vector<Symbols>& ways);

  /// Returns the slot of `name` for code in a function of `layout`. Some scope must have the name.
  Slot slot(const std::string& name, const FrameLayout& layout);
  bool knows_itself(const std::string& name) const;
  /// Returns whether slot(name) has found the variable of this scope.
  bool is_read(const std::string& name) const { return entries_.at(name).read; }
  /// Marks the visible variable of that name as read, if there is one.
  void mark_read(const std::string& name);
  Scope scope() const;
  FrameLayout& layout() const { return *layout_; }

 private:
  struct Entry {
    Load::From from = Load::From::nothing;
    int index = -1;
    const FrameLayout* layout = nullptr;
    bool read = false;
  };
  Entry* find(const std::string& name);
  Entry& define(const std::string& name, Load::From from);
  bool stores(const std::string& name) const;

  Symbols* outer_;
  Symbols* scope_ = nullptr;  ///< the scope of this path; null if this is not a path
  FrameLayout* layout_;
  int level_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> stores_;
};

/// Assigns a slot to every variable, by Jinja's rules:
///   - The template, loops, macros, {% set %}, {% filter %}, {% with %} and call blocks are scopes; {% if %} is not.
///   - A variable that a scope assigns is local in the whole scope. Before the assignment it has the value of the
///     variable of that name in the next outer scope.
///   - The template's own variables read the inputs before they are assigned only where a scope reads them first.
/// Also checks that filters and tests exist, except inside {% if %}, which may test for their existence. Throws
/// ParseError.
void bind_variables(Program& program);

}  // namespace lathe::jinja
