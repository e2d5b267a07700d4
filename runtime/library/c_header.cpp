#include "runtime/library/c_header.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "runtime/library/c_names.h"

namespace lathe {

namespace {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

/// Returns "f32[B, T], parameter h.0.attn.weight".
std::string type_comment(const LibrarySlot& slot, std::string_view role) {
  std::string text = fmt::format("{}{}", name(slot.dtype), slot.shape.to_string());
  if (is_complex(slot.dtype)) text += ", pairs of real and imaginary parts";
  if (slot.alignment > 1) text += fmt::format(", aligned to {} bytes", slot.alignment);
  if (!role.empty()) text += fmt::format(", {}", role);
  if (slot.c_name != slot.name) text += fmt::format(" {}", slot.name);
  return c_comment(text);
}

std::string_view role_of(const LibrarySlot& state) {
  if (!state.is_parameter) return "state";
  return state.is_written ? "parameter" : "parameter, read only";
}

/// Returns a struct of pointers.
std::string pointers(const std::string& type, const std::vector<LibrarySlot>& slots, std::string_view role) {
  if (slots.empty()) return "";
  std::string text = fmt::format("typedef struct {} {{\n", type);
  for (const LibrarySlot& slot : slots)
    text += fmt::format("  {}{} *{}; /* {} */\n", role == "input" ? "const " : "", c_type(slot.dtype), slot.c_name,
                        type_comment(slot, role == "state" ? role_of(slot) : ""));
  return text + fmt::format("}} {};\n\n", type);
}

class Header {
 public:
  Header(const LibraryPlan& plan, const HeaderMachine& machine) : plan_(plan), machine_(machine), p_(plan.prefix) {
    for (const LibraryDimension& dim : plan.dims) c_dims_[dim.name] = dim.c_name;
  }

  std::string text() {
    const std::string guard = upper(p_) + "_H";
    std::string text = fmt::format("/* {}: a library compiled by Lathe from {}, for {}. Do not edit.\n", p_, graphs(),
                                   c_comment(fmt::format("{}", fmt::join(plan_.targets, ", "))));
    text += usage();
    text += fmt::format("#ifndef {0}\n#define {0}\n\n#include <stddef.h>\n#include <stdint.h>\n\n", guard);
    text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    text += machine_.shared_types() + types();
    for (const LibraryFunction& function : plan_.functions) text += call(function);
    text += functions() + blocks();
    return text + fmt::format("#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", guard);
  }

 private:
  std::string graphs() const {
    std::vector<std::string> names;
    for (const LibraryFunction& function : plan_.functions) names.push_back("@" + function.programs.at(0).name);
    return c_comment(fmt::format("{}", fmt::join(names, ", ")));
  }

  std::string usage() const {
    const std::string first = p_ + plan_.functions[0].suffix();
    return fmt::format(
        "\n"
        "   {0} library;\n"
        "   {1}_call call = {{...}};      dims, tensors, workspace\n"
        "   int32_t error = {0}_init(&library{2}{3}{4});\n"
        "   if (!error) error = {1}_run(&library, &call);\n"
        "   if (error) puts({0}_message(error));\n"
        "\n"
        "{5} */\n",
        p_, first, machine_.init_arguments(), plan_.dims.empty() ? "" : ", &call.dims",
        plan_.states.empty() ? "" : ", &states, 1", machine_.rules());
  }

  std::string types() const {
    std::string text = fmt::format(
        "/* The library in a program; {0}_init() sets it. */\ntypedef struct {0} {{\n  uint32_t key;\n{1}}} {0};\n\n",
        p_, machine_.instance_members());
    if (!plan_.dims.empty()) {
      text += fmt::format("typedef struct {}_dims {{\n", p_);
      for (const LibraryDimension& dim : plan_.dims)
        text += fmt::format("  int64_t {}; /* {}0 to {} */\n", dim.c_name,
                            dim.c_name == dim.name ? "" : c_comment(dim.name) + ", ", dim.most);
      text += fmt::format("}} {}_dims;\n\n", p_);
    }
    return text + pointers(p_ + "_states", plan_.states, "state");
  }

  std::string call(const LibraryFunction& function) const {
    const std::string name = p_ + function.suffix();
    std::string text = pointers(name + "_inputs", function.inputs, "input") +
                       pointers(name + "_outputs", function.outputs, "output");
    for (const LibrarySlot& slot : function.outputs)
      if (slot.alignment > 1)
        text += fmt::format("#define {}_BYTES ((size_t){}) /* of {} */\n\n", upper(name),
                            slot.shape.numel().value().value(), slot.c_name);
    text += fmt::format("typedef struct {}_call {{\n", name);
    if (!plan_.dims.empty()) text += fmt::format("  {}_dims dims;\n", p_);
    if (!function.inputs.empty()) text += fmt::format("  {}_inputs inputs;\n", name);
    if (!plan_.states.empty()) text += fmt::format("  const {}_states *states; /* updated in place */\n", p_);
    if (!function.outputs.empty()) text += fmt::format("  {}_outputs outputs;\n", name);
    text += fmt::format(
        "  void *workspace; /* {}_workspace_bytes() or more, with any content */\n  size_t workspace_bytes;\n"
        "{}}} {}_call;\n\n",
        p_, machine_.call_members(), name);
    return text;
  }

  std::string functions() const {
    std::string arguments = fmt::format("{} *library{}", p_, machine_.init_parameters());
    if (!plan_.dims.empty()) arguments += fmt::format(", const {}_dims *dims", p_);
    if (!plan_.states.empty()) arguments += fmt::format(", const {}_states *states, uint64_t seed", p_);
    std::string text = "/* Functions return 0 or an error; see the function for messages. */\n\n";
    text += fmt::format(
        "/* {4}{1}. Call it first, in each process. The name of the symbol identifies this\n"
        "   header, so that a program does not link with a library that has another one. */\n"
        "#define {0}_init {2}\nint32_t {0}_init({3});\n\n",
        p_, plan_.states.empty() ? "" : ", and sets all states to their initial values unless `states` is null",
        plan_.init, arguments, machine_.init_comment());
    text += machine_.workspace_function();
    for (const LibraryFunction& function : plan_.functions) {
      const std::string name = p_ + function.suffix();
      text += fmt::format(
          "/* Checks the dims and the memory of a call. */\n"
          "int32_t {0}_check(const {1} *library, const {0}_call *call);\n",
          name, p_);
      text += machine_.run_functions(name, c_comment(function.programs.at(0).name));
    }
    text += machine_.other_functions(plan_.dims.empty() ? "" : fmt::format("const {}_dims *dims, ", p_));
    text += fmt::format(
        "/* Returns the message of an error, in memory of the library. */\nconst char *{0}_message(int32_t "
        "error);\n\n"
        "/* Returns a description of the library as JSON: dims, tensors with dtypes and shapes, targets. */\n"
        "const char *{0}_describe(void);\n\n",
        p_);
    return text;
  }

  /// Returns a size as an expression of C.
  std::string expression(const Dim& size) const {
    std::string text;
    for (const Dim::Term& term : size.terms()) {
      std::string product = fmt::format("{}", term.coefficient);
      for (const auto& [unknown, power] : term.monomial)
        for (int i = 0; i < power; ++i) product += fmt::format(" * (size_t)dims->{}", c_dims_.at(unknown));
      text += (text.empty() ? "" : " + ") + product;
    }
    return text.empty() ? "0" : text;
  }

  /// States in one block of memory, in the layout of a file.
  std::string blocks() const {
    if (plan_.states.empty()) return "";
    const std::string dims = have_dims() ? fmt::format("const {}_dims *dims, ", p_) : "";
    std::string text = fmt::format(
        "/* All states in one block of memory. It starts with those of known sizes, in {1}_FILE_BYTES bytes, in the\n"
        "   layout of a .safetensors file: {0}_file_header() and these bytes are such a file, which Lathe and other\n"
        "   programs read. A file with that header can be mapped, and its data used as a block. */\n"
        "#define {1}_FILE_BYTES ((size_t){2})\nconst char *{0}_file_header(size_t *bytes);\n\n"
        "/* Sets all pointers to their places in a block, and returns its size in bytes. A null block only returns "
        "the\n"
        "   size. */\n"
        "static inline size_t {0}_place_states({3}void *block, {0}_states *states) {{\n"
        "  char *start = (char *)block;\n  size_t at = 0;\n",
        p_, upper(p_), plan_.file_bytes(), dims);
    text += places(0);
    const int alignment = machine_.block_alignment();
    if (alignment == 0) return text;
    return text + fmt::format(
                      "/* The same for a block that calls use: each state starts at a multiple of {2} bytes of the "
                      "block. */\n"
                      "static inline size_t {0}_place_device_states({1}void *block, {0}_states *states) {{\n"
                      "  char *start = (char *)block;\n  size_t at = 0;\n{3}",
                      p_, dims, alignment, places(alignment));
  }

  /// Returns whether sizes of states are unknown.
  bool have_dims() const {
    return std::ranges::any_of(plan_.states, [](const LibrarySlot& state) { return !state.shape.numel().value(); });
  }

  /// Returns the end of a function that places states one after the other.
  std::string places(int alignment) const {
    std::string text;
    for (const int i : plan_.block_order()) {
      const LibrarySlot& state = plan_.states[i];
      text +=
          fmt::format("  if (start) states->{} = ({} *)(void *)(start + at);\n", state.c_name, c_type(state.dtype));
      text += fmt::format("  at += {} * ({});\n", size_in_bytes(state.dtype), expression(state.shape.numel()));
      if (alignment > 0) text += fmt::format("  at = (at + {0}) / {1} * {1};\n", alignment - 1, alignment);
    }
    return text + "  return at;\n}\n\n";
  }

  const LibraryPlan& plan_;
  const HeaderMachine& machine_;
  const std::string& p_;
  std::map<std::string, std::string> c_dims_;
};

}  // namespace

std::string c_levels(const std::vector<std::string>& targets) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < targets.size(); ++i) names.push_back(fmt::format("{} = {}", i, targets[i]));
  return c_comment(fmt::format("{}", fmt::join(names, ", ")));
}

std::string c_header(const LibraryPlan& plan, const HeaderMachine& machine) { return Header(plan, machine).text(); }

}  // namespace lathe
