#include "codegen/cuda/index_text.h"

#include <algorithm>

#include <fmt/core.h>

#include "codegen/cuda/names.h"

namespace lathe::cuda {

using kernel::Instruction;
using kernel::Opcode;
using kernel::Type;
using kernel::ValueId;

namespace {

std::string type_text(Type type, bool narrow) { return type_name({narrow ? i32 : type.scalar, type.lanes}); }

}  // namespace

std::string IndexText::type(ValueId id) const { return type_text(info(id).type, is_narrow(id)); }
std::string IndexText::var_type(kernel::VarId id) const {
  return type_text(kernel_.vars[at(id)].type, is_narrow_var(id));
}

bool IndexText::computes_narrow(ValueId id) const {
  const auto fits = [this](ValueId value) { return !is_index(value) || is_narrow(value); };
  return fits(id) && std::all_of(info(id).args.begin(), info(id).args.end(), fits);
}

Expression IndexText::constant(ValueId id) const { return {constant_text(info(id), is_narrow(id))}; }

Expression IndexText::dim(ValueId id, const std::string& name) const {
  return {is_narrow(id) ? fmt::format("i32({})", name) : name};
}

Expression IndexText::wide(ValueId id, const Expression& text) const {
  if (!is_narrow(id)) return text;
  const Instruction& in = info(id);
  if (in.op == Opcode::constant) return {constant_text(in)};
  return {fmt::format("{}({})", in.type.lanes > 1 ? "cast<i64>" : "i64", text.text)};
}

std::string IndexText::narrow(ValueId id, const std::string& text) const {
  return is_narrow(id) ? text : fmt::format("i32({})", text);
}

Expression IndexText::narrowed(ValueId id, const Expression& text) const {
  if (!is_narrow(id)) return text;
  return {fmt::format("{}({})", info(id).type.lanes > 1 ? "cast<i32>" : "i32", text.text)};
}

}  // namespace lathe::cuda
