#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/text/template/syntax/ast.h"

namespace lathe::jinja {

/// The slots of one function: a slot for each name at each level of scopes.
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

/// The variables of one scope, while the statements in it are looked through.
class Symbols {
 public:
  Symbols(Symbols* outer, FrameLayout& layout)
      : outer_(outer), layout_(&layout), level_(outer ? outer->level_ + 1 : 0) {}
  /// One way through `scope`, which outlives it: holds what it adds, for merge().
  static Symbols way_through(Symbols& scope);

  /// The scope reads `name`.
  void load(const std::string& name);
  /// The scope assigns `name`.
  void store(const std::string& name);
  /// What enters the scope sets `name`; gives its index in the frame.
  int declare(const std::string& name);
  /// One of several ways through the scope may have run: what they assign may be assigned.
  void merge(const std::vector<Symbols>& ways);

  /// Where `name` lives, for code in a function of `layout`. Some scope knows the name.
  Slot slot(const std::string& name, const FrameLayout& layout);
  bool knows_itself(const std::string& name) const;
  /// Whether slot(name) found the variable of this scope.
  bool is_read(const std::string& name) const { return entries_.at(name).read; }
  /// The same for the variable of that name that this scope sees, if there is one.
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
  Symbols* scope_ = nullptr;  ///< that this is a way through
  FrameLayout* layout_;
  int level_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> stores_;
};

}  // namespace lathe::jinja
