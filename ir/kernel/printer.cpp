#include "ir/kernel/printer.h"

#include <charconv>
#include <concepts>
#include <iterator>
#include <set>

#include <fmt/core.h>

#include "ir/kernel/machine/region.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

std::string_view name(Access access) {
  switch (access) {
    case Access::read: return "read";
    case Access::write: return "write";
    case Access::read_write: return "readwrite";
  }
  throw InternalError("an access out of range");
}

std::string_view name(Space space) {
  switch (space) {
    case Space::parameter: return "parameter";
    case Space::register_: return "register";
    case Space::shared: return "shared";
    case Space::stack: return "stack";
  }
  throw InternalError("a space out of range");
}

class Printer : MachineText {
 public:
  Printer(const Kernel& kernel, bool canonical) : kernel_(kernel), canonical_(canonical) {
    value_names_.resize(kernel.values.size());
    var_names_.resize(kernel.vars.size());
    name_buffers();
  }

  std::string run() {
    add("kernel @", canonical_ ? "k" : kernel_.name, "(");
    for (int i = 0; i < kernel_.parameter_count(); ++i) {
      const BufferInfo& buffer = kernel_.buffers[static_cast<std::size_t>(i)];
      add(i ? ", " : "", buffer_names_[static_cast<std::size_t>(i)], ": ", name(buffer.access), " ",
          lathe::name(buffer.dtype), buffer.noalias ? "" : " aliased");
    }
    for (std::size_t i = 0; i < kernel_.dims.size(); ++i) add(i ? ", " : "; ", dim_name(i));
    out_ += ") {\n";
    if (!canonical_)
      for (const std::string& note : kernel_.notes) add("  // ", note, "\n");
    for (std::size_t i = 0; i < kernel_.maps.size(); ++i) map(i);
    depth_ = 1;
    block(kernel_.body);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  /// Texts and numbers, one after the other. Every kernel is printed to be compared and looked up: formats, which are
  /// read each time, would take several times as long.
  template <class... Parts>
  void add(const Parts&... parts) {
    (put(parts), ...);
  }
  void put(std::string_view text) { out_ += text; }
  template <std::integral Number>
  void put(Number number) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
  }
  void indent() { out_.append(2 * static_cast<std::size_t>(depth_), ' '); }

  /// Names as given, made unique by a number.
  void name_buffers() {
    std::set<std::string> taken;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      std::string unique = canonical_ ? "b" + std::to_string(i) : kernel_.buffers[i].name;
      for (int n = 2; !taken.insert(unique).second; ++n) unique = kernel_.buffers[i].name + "_" + std::to_string(n);
      buffer_names_.push_back(unique);
    }
  }

  std::string dim_name(std::size_t i) const { return canonical_ ? "d" + std::to_string(i) : kernel_.dims[i]; }
  const std::string& buffer(BufferId id) const override { return buffer_names_[static_cast<std::size_t>(id)]; }
  const Instruction& at(ValueId id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  std::string constant(const Instruction& in) const {
    const std::string type = in.type == Type{i64, 1} ? "" : ":" + to_string(in.type);
    if (is_float(in.type.scalar)) return fmt::format("{}", in.real) + type;
    if (in.type.scalar == boolean) return (in.integer != 0 ? "true" : "false") + type;
    return std::to_string(in.integer) + type;
  }

  const std::string& var(VarId id) const override { return var_names_[static_cast<std::size_t>(id)]; }

  std::string value(ValueId id) const override {
    const Instruction& in = at(id);
    if (in.op == Opcode::constant) return constant(in);
    if (in.op == Opcode::dim) return dim_name(static_cast<std::size_t>(in.integer));
    const std::string& known = value_names_[static_cast<std::size_t>(id)];
    return known.empty() ? "<undefined " + std::to_string(id) + ">" : known;
  }

  void suffix(ValueId mask, int alignment) {
    if (mask != none) add(" mask ", value(mask));
    if (alignment != 0) add(" align ", alignment);
  }

  void block(const Block& statements) {
    for (const Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
  }

  void nested(const Block& statements) {
    ++depth_;
    block(statements);
    --depth_;
    indent();
    out_ += "}";
  }

  void arguments(const Instruction& in) {
    for (std::size_t i = 0; i < in.args.size(); ++i) add(i ? ", " : " ", value(in.args[i]));
  }

  void expression(const Instruction& in) {
    switch (in.op) {
      case Opcode::constant:
      case Opcode::dim:
      case Opcode::loop_index: add(kernel::name(in.op)); break;
      case Opcode::scalar:
        add(lathe::name(in.scalar_op));
        arguments(in);
        break;
      case Opcode::fma:
      case Opcode::broadcast:
      case Opcode::ramp:
        add(kernel::name(in.op));
        arguments(in);
        break;
      case Opcode::reduce: add("reduce.", lathe::name(in.scalar_op), " ", value(in.args[0])); break;
      case Opcode::extract: add("extract ", value(in.args[0]), ", ", in.integer); break;
      case Opcode::shuffle:
        add("shuffle ", value(in.args[0]), ", ", value(in.args[1]), " {");
        for (std::size_t i = 0; i < in.lanes.size(); ++i) add(i ? ", " : "", in.lanes[i]);
        out_ += "}";
        break;
      case Opcode::load: add("load ", buffer(in.buffer), "[", value(in.args[0]), "]"); break;
      case Opcode::load_strided:
        add("load ", buffer(in.buffer), "[", value(in.args[0]), " by ", value(in.args[1]), "]");
        break;
      case Opcode::gather: add("gather ", buffer(in.buffer), "[", value(in.args[0]), "]"); break;
      case Opcode::get: add("get ", var_names_[static_cast<std::size_t>(in.integer)]); break;
      case Opcode::machine: out_ += in.machine->record->text(in, *this); break;
    }
    suffix(in.mask, in.alignment);
  }

  /// "map m0 = x[0] by 64 of k, 128 of rows by k": boxes of 64 x 128 elements.
  void map(std::size_t number) {
    const TensorMap& m = kernel_.maps[number];
    add("  map m", number, " = ", buffer(m.from), "[", value(m.offset), "] by");
    for (std::size_t d = 0; d < m.sizes.size(); ++d) {
      add(d ? "," : "", " ", m.box[d], " of ", value(m.sizes[d]));
      if (d > 0) add(" by ", value(m.strides[d - 1]));
    }
    out_ += "\n";
  }

  void statement(const Compute& s) {
    indent();
    if (at(s.value).type == no_value) {
      expression(at(s.value));
      out_ += "\n";
      return;
    }
    value_names_[static_cast<std::size_t>(s.value)] = "%" + std::to_string(next_value_++);
    add(value(s.value), " = ");
    expression(at(s.value));
    add(" : ", to_string(at(s.value).type), "\n");
  }

  void statement(const Store& s) {
    indent();
    const char* verb = s.kind == StoreKind::scatter ? "scatter" : s.streams ? "stream" : "store";
    add(verb, " ", buffer(s.buffer), "[", value(s.index));
    if (s.kind == StoreKind::strided) add(" by ", value(s.stride));
    add("] = ", value(s.value));
    suffix(s.mask, s.alignment);
    out_ += "\n";
  }

  void statement(const SetVar& s) {
    indent();
    std::string& var = var_names_[static_cast<std::size_t>(s.var)];
    if (s.declares) {
      var = "v" + std::to_string(next_var_++);
      add("var ", var, ": ", to_string(kernel_.vars[static_cast<std::size_t>(s.var)].type), " = ", value(s.value),
          "\n");
    } else {
      add("set ", var, " = ", value(s.value), "\n");
    }
  }

  void statement(const Alloc& s) {
    const BufferInfo& info = kernel_.buffers[static_cast<std::size_t>(s.buffer)];
    indent();
    add("alloc ", buffer(s.buffer), ": ", lathe::name(info.dtype), "[", info.count, "] @", name(info.space), "\n");
  }

  void statement(const Prefetch& s) {
    indent();
    add("prefetch ", buffer(s.buffer), "[", value(s.index), "]\n");
  }

  void statement(const Barrier&) {
    indent();
    out_ += "barrier\n";
  }

  void statement(const Check& s) {
    indent();
    add("check ", value(s.condition), " else ", s.code, "\n");
  }

  void statement(const Loop& s) {
    indent();
    value_names_[static_cast<std::size_t>(s.index)] = "i" + std::to_string(next_index_++);
    add("for ", value(s.index), " in ", value(s.lo), "..", value(s.hi), " step ", value(s.step), " @",
        kernel::name(s.kind), " {\n");
    nested(s.body);
    out_ += "\n";
  }

  void statement(const Branch& s) {
    indent();
    add("if ", value(s.condition), " {\n");
    nested(s.then_block);
    if (!s.else_block.empty()) {
      out_ += " else {\n";
      nested(s.else_block);
    }
    out_ += "\n";
  }

  void statement(const MachineRegion& s) {
    indent();
    if (s.index != none) value_names_[static_cast<std::size_t>(s.index)] = "i" + std::to_string(next_index_++);
    out_ += s.record->text(s, *this);
    for (std::size_t i = 0; i < s.bodies.size(); ++i) {
      const std::string_view body = s.record->bodies[i].name;
      add(body.empty() ? "" : " ", body, " {\n");
      nested(s.bodies[i]);
    }
    out_ += "\n";
  }

  const Kernel& kernel_;
  bool canonical_;
  std::string out_;
  std::vector<std::string> value_names_, var_names_, buffer_names_;
  int next_value_ = 0, next_var_ = 0, next_index_ = 0, depth_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel, false).run(); }

std::string canonical_text(const Kernel& kernel) { return Printer(kernel, true).run(); }

}  // namespace lathe::kernel
