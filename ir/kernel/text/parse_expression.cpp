#include "ir/kernel/text/parse_expression.h"

#include "ir/support/nearest.h"

namespace lathe::kernel {

using syntax::Token;

namespace {

constexpr Opcode plain_opcodes[] = {Opcode::fma, Opcode::broadcast, Opcode::ramp};
constexpr Opcode other_opcodes[] = {Opcode::reduce, Opcode::extract, Opcode::shuffle,
                                    Opcode::load,   Opcode::gather,  Opcode::get};

int operands_of(Opcode op) { return op == Opcode::fma ? 3 : op == Opcode::ramp ? 2 : 1; }

/// Parses `count` values, separated by commas.
std::vector<ValueId> values(KernelReader& reader, int count) {
  std::vector<ValueId> args;
  for (int i = 0; i < count; ++i) {
    if (i > 0) reader.expect(",");
    args.push_back(reader.value());
  }
  return args;
}

Instruction reduction(KernelReader& reader, const Token& at) {
  const std::string_view name = reader.suffix_word();
  const auto op = parse_scalar_op(name);
  if (!op) reader.in.fail(at, "a reduction names its operation", "such as reduce.add or reduce.max");
  return {.op = Opcode::reduce, .scalar_op = *op, .args = values(reader, 1)};
}

Instruction extraction(KernelReader& reader) {
  Instruction made{.op = Opcode::extract, .args = values(reader, 1)};
  reader.expect(",");
  made.integer = parse_integer(reader.in);
  return made;
}

Instruction shuffle(KernelReader& reader) {
  constexpr std::size_t most = 64;
  Instruction made{.op = Opcode::shuffle, .args = values(reader, 2)};
  const Token open = reader.in.expect("{");
  reader.list([&] {
    made.lanes.push_back(reader.number());
    if (made.lanes.size() > most) reader.in.fail(open, fmt::format("a shuffle has at most {} lanes", most));
  });
  reader.expect("}");
  return made;
}

/// x[i], or x[i by s]
Instruction load(KernelReader& reader) {
  Instruction made{.op = Opcode::load, .buffer = reader.buffer()};
  reader.expect("[");
  made.args.push_back(reader.value());
  if (reader.accept("by")) {
    made.op = Opcode::load_strided;
    made.args.push_back(reader.value());
  }
  reader.expect("]");
  return made;
}

Instruction gather(KernelReader& reader) {
  const BufferId buffer = reader.buffer();
  return {.op = Opcode::gather, .args = {reader.element()}, .buffer = buffer};
}

Instruction get(KernelReader& reader) {
  const VarId var = reader.var();
  return {.op = Opcode::get, .integer = var};
}

Instruction with_opcode(KernelReader& reader, Opcode op, const Token& at) {
  switch (op) {
    case Opcode::reduce: return reduction(reader, at);
    case Opcode::extract: return extraction(reader);
    case Opcode::shuffle: return shuffle(reader);
    case Opcode::load: return load(reader);
    case Opcode::gather: return gather(reader);
    case Opcode::get: return get(reader);
    default: return {.op = op, .args = values(reader, operands_of(op))};
  }
}

/// Throws unless the instruction has as many operands as its record allows.
void check_counts(const KernelReader& reader, const Instruction& in, const IntrinsicRecord& record, const Token& at) {
  const auto count = [&](std::size_t n, OperandCount wanted, std::string_view what) {
    if (n >= static_cast<std::size_t>(wanted.least) && n <= static_cast<std::size_t>(wanted.most)) return;
    reader.in.fail_since(
        at, fmt::format("{} takes {} to {} {}, not {}", record.name, wanted.least, wanted.most, what, n));
  };
  count(in.args.size(), record.args, "values");
  count(in.machine->buffers.size(), record.buffers, "buffers");
  count(in.machine->vars.size(), record.vars, "variables");
}

[[noreturn]] void unknown(const KernelReader& reader, std::string_view name, const Token& at) {
  std::vector<std::string_view> names = reader.operation_names();
  for (const ScalarOpTraits& op : all_scalar_ops()) names.push_back(op.name);
  for (const Opcode op : plain_opcodes) names.push_back(kernel::name(op));
  for (const Opcode op : other_opcodes) names.push_back(kernel::name(op));
  reader.in.fail(at, fmt::format("there is no operation {}", name), did_you_mean(name, names));
}

Instruction operation(KernelReader& reader, std::string_view name, const Token& at) {
  for (const Opcode op : plain_opcodes)
    if (kernel::name(op) == name) return with_opcode(reader, op, at);
  for (const Opcode op : other_opcodes)
    if (kernel::name(op) == name) return with_opcode(reader, op, at);
  if (const auto op = parse_scalar_op(name))
    return {.op = Opcode::scalar, .scalar_op = *op, .args = values(reader, arity(*op))};
  const IntrinsicRecord* record = reader.operation(name);
  if (!record) unknown(reader, name, at);
  Instruction made = record->parse(reader);
  check_counts(reader, made, *record, at);
  return made;
}

}  // namespace

void parse_suffix(KernelReader& reader, ValueId& mask, int& alignment) {
  if (reader.accept("mask")) mask = reader.value();
  if (reader.accept("align")) alignment = reader.number();
}

Instruction parse_expression(KernelReader& reader) {
  const Token at = reader.in.peek();
  Instruction made = operation(reader, reader.operation_name(), at);
  reader.end_suffix();
  parse_suffix(reader, made.mask, made.alignment);
  return made;
}

}  // namespace lathe::kernel
