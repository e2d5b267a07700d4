#include "ir/kernel/intrinsics/record.h"

#include <algorithm>
#include <memory>

namespace lathe::kernel {

void IntrinsicRules::want_multiple(ValueId id, int of, std::string_view what) const {
  const Instruction& given = value(id);
  require(given.op != Opcode::constant || given.integer % of == 0, "alignment", "{} is {}, no multiple of {}", what,
          given.integer, of);
}

void IntrinsicReader::words(std::string_view text) {
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find(' ', at), text.size());
    expect(text.substr(at, end - at));
  }
}

ValueId IntrinsicReader::element() {
  expect("[");
  const ValueId id = value();
  expect("]");
  return id;
}

Instruction intrinsic_instruction(IntrinsicOp op, std::vector<ValueId> args, Type type) {
  return {.op = Opcode::intrinsic,
          .type = type,
          .args = std::move(args),
          .machine = std::make_shared<const IntrinsicOp>(std::move(op))};
}

std::string plain_text(std::string_view name, const std::vector<ValueId>& args, const IntrinsicText& text) {
  std::string result(name);
  for (std::size_t i = 0; i < args.size(); ++i) result += (i ? ", " : " ") + text.value(args[i]);
  return result;
}

const Instruction* intrinsic_operation(const Kernel& kernel, const Statement& statement) {
  const auto* compute = std::get_if<Compute>(&statement.node);
  if (!compute) return nullptr;
  const Instruction& in = kernel.values[compute->value];
  return in.op == Opcode::intrinsic ? &in : nullptr;
}

const IntrinsicRecord* record_of(const Kernel& kernel, const Statement& statement) {
  const Instruction* in = intrinsic_operation(kernel, statement);
  return in ? record_of(*in) : nullptr;
}

std::string_view name_of(const Instruction& in) {
  const IntrinsicRecord* record = record_of(in);
  return record ? record->name : name(in.op);
}

bool is_collective(const Instruction& in) {
  const IntrinsicRecord* record = record_of(in);
  return record && record->together != Together::thread;
}

bool computes_alone(const Instruction& in) {
  const IntrinsicRecord* record = record_of(in);
  return record ? record->is_pure : in.buffer == none;
}

void verify_operands(const Kernel& kernel, const Instruction& in) {
  require(kernel, in.machine && in.machine->record, "arity", "an intrinsic without a record");
  const IntrinsicRecord& record = *in.machine->record;
  const auto count = [&](std::size_t n, OperandCount wanted, std::string_view what) {
    require(kernel, n >= static_cast<std::size_t>(wanted.least) && n <= static_cast<std::size_t>(wanted.most),
            "arity", "a {} of {} {}", record.name, n, what);
  };
  const auto attributes = static_cast<int>(record.attributes);
  count(in.args.size(), record.args, "values");
  count(in.machine->buffers.size(), record.buffers, "buffers");
  count(in.machine->vars.size(), record.vars, "variables");
  count(in.machine->attributes.size(), {attributes, attributes}, "attributes");
  require(kernel, !record.of_map || (in.machine->map >= 0 && in.machine->map < static_cast<int>(kernel.maps.size())),
          "map_tensor", "map {} does not exist", in.machine->map);
  require(kernel, record.gives_value == (in.type != no_value), "type", "a {} of type {}", record.name, in.type);
}

}  // namespace lathe::kernel
