#include "codegen/cuda/index/index_text.h"

#include <algorithm>

#include <fmt/core.h>

#include "codegen/cuda/names.h"

namespace lathe::cuda {

using kernel::Instruction;
using kernel::Opcode;
using kernel::Type;
using kernel::ValueId;

namespace {

std::string type_text(Type type, bool int32) { return type_name({int32 ? i32 : type.scalar, type.lanes}); }

}  // namespace

std::string IndexText::type(ValueId id) const { return type_text(info(id).type, is_int32(id)); }
std::string IndexText::var_type(kernel::VarId id) const {
  return type_text(kernel_.vars[at(id)].type, is_int32_var(id));
}

bool IndexText::computes_in_int32(ValueId id) const {
  const auto fits = [this](ValueId value) { return !is_index(value) || is_int32(value); };
  return fits(id) && std::all_of(info(id).args.begin(), info(id).args.end(), fits);
}

Expression IndexText::constant(ValueId id) const { return {constant_text(info(id), is_int32(id))}; }

Expression IndexText::dim(ValueId id, const std::string& name) const {
  return {is_int32(id) ? fmt::format("i32({})", name) : name};
}

Expression IndexText::int64(ValueId id, const Expression& text) const {
  if (!is_int32(id)) return text;
  const Instruction& in = info(id);
  if (in.op == Opcode::constant) return {constant_text(in)};
  return {fmt::format("{}({})", in.type.lanes > 1 ? "cast<i64>" : "i64", text.text)};
}

std::string IndexText::int32(ValueId id, const std::string& text) const {
  return is_int32(id) ? text : fmt::format("i32({})", text);
}

Expression IndexText::narrowed(ValueId id, const Expression& text) const {
  if (!is_int32(id)) return text;
  return {fmt::format("{}({})", info(id).type.lanes > 1 ? "cast<i32>" : "i32", text.text)};
}

}  // namespace lathe::cuda
