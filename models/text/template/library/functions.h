#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "models/text/template/values/object.h"

namespace lathe::jinja {

/// A built-in function.
class NativeFunction final : public Object {
 public:
  using Action = std::function<Value(Runtime&, const Arguments&)>;
  NativeFunction(std::string_view name, Action action) : name_(name), action_(std::move(action)) {}

  std::string_view type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& given) override { return action_(runtime, given); }
  std::string repr(Runtime&, int depth) override;

 private:
  std::string name_;
  Action action_;
};

/// Returns a new object for a standard function: range, dict, namespace, cycler, joiner, raise_exception,
/// strftime_now. Returns missing for other names.
Value make_function(Runtime& runtime, std::string_view name);

}  // namespace lathe::jinja
