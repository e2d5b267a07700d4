#pragma once

#include "models/text/template/values/object.h"

namespace lathe::jinja {

/// namespace(..): the only value with assignable attributes.
class Namespace final : public Object {
 public:
  /// Throws Failure [template_unsafe] for names that start with an underscore.
  void set(const std::string& name, Value value);
  const std::vector<Dict::Item>& attributes() const { return attributes_.items(); }
  /// Returns the attribute of that name, or null.
  const Value* find(std::string_view name) const { return attributes_.find(name); }

  std::string_view type_name() const override { return "Namespace"; }
  Value attribute(Runtime&, std::string_view name) override;
  std::string repr(Runtime& runtime, int depth) override;

 private:
  DictBuilder attributes_;
};

}  // namespace lathe::jinja
