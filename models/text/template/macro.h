#pragma once

#include "models/text/template/interpreter.h"

namespace lathe::jinja {

/// A macro and the frame that it captures.
class MacroObject final : public Object {
 public:
  MacroObject(Interpreter& interpreter, const MacroDef& macro, FramePtr outer)
      : interpreter_(interpreter), macro_(macro), outer_(std::move(outer)) {}

  std::string_view type_name() const override { return "Macro"; }
  Value attribute(Runtime& runtime, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    return interpreter_.call_macro(macro_, outer_, arguments);
  }
  std::string repr(Runtime&, int depth) override;
  const MacroDef& definition() const { return macro_; }
  const FramePtr& outer() const { return outer_; }

 private:
  Interpreter& interpreter_;
  const MacroDef& macro_;
  FramePtr outer_;
};

}  // namespace lathe::jinja
