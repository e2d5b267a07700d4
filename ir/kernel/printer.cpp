#include "ir/kernel/printer.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <iterator>
#include <set>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/region.h"
#include "ir/support/error.h"
#include "ir/support/syntax/quoted.h"

namespace lathe::kernel {

namespace {

class Printer : IntrinsicText {
 public:
  Printer(const Kernel& kernel, bool canonical) : kernel_(kernel), canonical_(canonical) {
    value_names_.resize(kernel.values.size());
    var_names_.resize(kernel.vars.size());
    name_buffers();
  }

  std::string run() {
    add("kernel ", canonical_ ? "@k" : syntax::sigiled('@', kernel_.name), "(");
    for (int i = 0; i < kernel_.parameter_count(); ++i) {
      const BufferInfo& buffer = kernel_.buffers[i];
      add(i ? ", " : "", buffer_names_[i], ": ", kernel::name(buffer.access), " ", lathe::name(buffer.dtype),
          buffer.noalias ? "" : " aliased", buffer.unaligned ? " unaligned" : "");
    }
    for (std::size_t i = 0; i < kernel_.dims.size(); ++i) {
      add(i ? ", " : "; ");
      put_dim(out_, i);
    }
    out_ += ") {\n";
    if (!canonical_)
      for (const std::string& note : kernel_.notes) add("  note ", syntax::quoted(note), "\n");
    for (std::size_t i = 0; i < kernel_.maps.size(); ++i) map(i);
    for (const auto& phase : kernel_.phase_kernels) nested_kernel(*phase);
    depth_ = 1;
    block(kernel_.body);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  /// Appends texts and numbers. Every kernel is printed for comparison and cache lookup; format strings, parsed on
  /// each call, would be several times slower.
  template <class... Parts>
  void add(const Parts&... parts) {
    (put(out_, parts), ...);
  }
  static void put(std::string& out, std::string_view text) { out += text; }
  template <std::integral Number>
  static void put(std::string& out, Number number) {
    char digits[24];
    out.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
  }
  static void put(std::string& out, Type type) {
    put(out, lathe::name(type.scalar));
    if (type.lanes != 1) put(out, "x"), put(out, type.lanes);
  }
  /// A letter and a number; letter 0: not named yet.
  struct Name {
    char letter = 0;
    int number = 0;
  };
  static void put(std::string& out, Name name) {
    out += name.letter;
    put(out, name.number);
  }
  /// A value to print by name.
  struct Named {
    ValueId id;
  };
  void put(std::string& out, Named value) const {
    const Instruction& in = at(value.id);
    if (in.op == Opcode::constant) return put_constant(out, in);
    if (in.op == Opcode::dim) return put_dim(out, static_cast<std::size_t>(in.integer));
    const Name known = value_names_[value.id];
    if (known.letter != 0) return put(out, known);
    out += fmt::format("<undefined {}>", value.id);
  }
  void put_dim(std::string& out, std::size_t i) const {
    if (canonical_)
      put(out, Name{'d', static_cast<int>(i)});
    else
      put(out, syntax::name_or_quoted(kernel_.dims[i]));
  }
  static void put_constant(std::string& out, const Instruction& in) {
    if (is_float(in.type.scalar))
      fmt::format_to(std::back_inserter(out), "{}", in.real);
    else if (in.type.scalar == boolean)
      put(out, in.integer != 0 ? "true" : "false");
    else
      put(out, in.integer);
    if (in.type != Type{i64, 1}) put(out, ":"), put(out, in.type);
  }
  void indent() { out_.append(2 * static_cast<std::size_t>(depth_), ' '); }

  /// Uses the given names; a number makes duplicates unique.
  void name_buffers() {
    std::set<std::string> taken;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      std::string unique = canonical_ ? "b" + std::to_string(i) : kernel_.buffers[i].name;
      for (int n = 2; !taken.insert(unique).second; ++n) unique = kernel_.buffers[i].name + "_" + std::to_string(n);
      buffer_names_.push_back(syntax::name_or_quoted(unique));
    }
  }

  const std::string& buffer(BufferId id) const override { return buffer_names_[id]; }
  const Instruction& at(ValueId id) const { return kernel_.values[id]; }

  const std::string& var(VarId id) const override { return var_names_[id]; }

  std::string value(ValueId id) const override {
    std::string text;
    put(text, Named{id});
    return text;
  }

  /// Names the index of a loop or a region: i0, i1, ..., without the names of dims.
  void name_index(ValueId id) {
    const auto is_dim = [&](int number) {
      return !canonical_ && std::count(kernel_.dims.begin(), kernel_.dims.end(), "i" + std::to_string(number)) > 0;
    };
    while (is_dim(next_index_)) ++next_index_;
    value_names_[id] = {'i', next_index_++};
  }

  void suffix(ValueId mask, int alignment) {
    if (mask != none) add(" mask ", Named{mask});
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
    for (std::size_t i = 0; i < in.args.size(); ++i) add(i ? ", " : " ", Named{in.args[i]});
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
      case Opcode::reduce: add("reduce.", lathe::name(in.scalar_op), " ", Named{in.args[0]}); break;
      case Opcode::extract: add("extract ", Named{in.args[0]}, ", ", in.integer); break;
      case Opcode::shuffle:
        add("shuffle ", Named{in.args[0]}, ", ", Named{in.args[1]}, " {");
        for (std::size_t i = 0; i < in.lanes.size(); ++i) add(i ? ", " : "", in.lanes[i]);
        out_ += "}";
        break;
      case Opcode::load: add("load ", buffer(in.buffer), "[", Named{in.args[0]}, "]"); break;
      case Opcode::load_strided:
        add("load ", buffer(in.buffer), "[", Named{in.args[0]}, " by ", Named{in.args[1]}, "]");
        break;
      case Opcode::gather: add("gather ", buffer(in.buffer), "[", Named{in.args[0]}, "]"); break;
      case Opcode::get: add("get ", var_names_[in.integer]); break;
      case Opcode::intrinsic: out_ += in.machine->record->text(in, *this); break;
    }
    suffix(in.mask, in.alignment);
  }

  /// The text of a kernel that phases run, two columns to the right.
  void nested_kernel(const Kernel& kernel) {
    const std::string text = Printer(kernel, canonical_).run();
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      add("  ", std::string_view(text).substr(at, end + 1 - at));
    }
  }

  /// "map m0 = x[0] by 64 of k, 128 of rows by k": boxes of 64 x 128 elements.
  void map(std::size_t number) {
    const TensorMap& m = kernel_.maps[number];
    add("  map m", number, " = ", buffer(m.from), "[", Named{m.offset}, "] by");
    for (std::size_t d = 0; d < m.sizes.size(); ++d) {
      add(d ? "," : "", " ", m.box[d], " of ", Named{m.sizes[d]});
      if (d > 0) add(" by ", Named{m.strides[d - 1]});
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
    value_names_[s.value] = {'%', next_value_++};
    add(Named{s.value}, " = ");
    expression(at(s.value));
    add(" : ", at(s.value).type, "\n");
  }

  void statement(const Store& s) {
    indent();
    const char* verb = s.kind == StoreKind::scatter ? "scatter" : s.streams ? "stream" : "store";
    add(verb, " ", buffer(s.buffer), "[", Named{s.index});
    if (s.kind == StoreKind::strided) add(" by ", Named{s.stride});
    add("] = ", Named{s.value});
    suffix(s.mask, s.alignment);
    out_ += "\n";
  }

  void statement(const SetVar& s) {
    indent();
    std::string& var = var_names_[s.var];
    if (s.declares) {
      var = "v" + std::to_string(next_var_++);
      add("var ", var, ": ", kernel_.vars[s.var].type, " = ", Named{s.value}, "\n");
    } else {
      add("set ", var, " = ", Named{s.value}, "\n");
    }
  }

  void statement(const Alloc& s) {
    const BufferInfo& info = kernel_.buffers[s.buffer];
    indent();
    add("alloc ", buffer(s.buffer), ": ", lathe::name(info.dtype), "[", info.count, "] @", kernel::name(info.space),
        "\n");
  }

  void statement(const Prefetch& s) {
    indent();
    add("prefetch ", buffer(s.buffer), "[", Named{s.index}, "]\n");
  }

  void statement(const Barrier&) {
    indent();
    out_ += "barrier\n";
  }

  void statement(const Check& s) {
    indent();
    add("check ", Named{s.condition}, " else ", s.code, "\n");
  }

  void statement(const Loop& s) {
    indent();
    name_index(s.index);
    add("for ", Named{s.index}, " in ", Named{s.lo}, "..", Named{s.hi}, " step ", Named{s.step}, " @",
        kernel::name(s.kind), " {\n");
    nested(s.body);
    out_ += "\n";
  }

  void statement(const Branch& s) {
    indent();
    add("if ", Named{s.condition}, " {\n");
    nested(s.then_block);
    if (!s.else_block.empty()) {
      out_ += " else {\n";
      nested(s.else_block);
    }
    out_ += "\n";
  }

  void statement(const IntrinsicRegion& s) {
    indent();
    if (s.index != none) name_index(s.index);
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
  std::vector<Name> value_names_;
  std::vector<std::string> var_names_, buffer_names_;
  int next_value_ = 0, next_var_ = 0, next_index_ = 0, depth_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel, false).run(); }

std::string canonical_text(const Kernel& kernel) { return Printer(kernel, true).run(); }

}  // namespace lathe::kernel
