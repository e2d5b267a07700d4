#include "tests/import/support/program_writer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tests/import/support/archive_writer.h"
#include "tests/import/support/model_writer.h"

namespace lathe::test {

namespace {

/// Returns the number of an element type in the format.
int scalar_type(DType dtype) {
  switch (dtype) {
    case u8: return 1;
    case i8: return 2;
    case i32: return 4;
    case i64: return 5;
    case f32: return 7;
    case f64: return 8;
    default: return 12;  // bool
  }
}

std::string named(std::string_view name, std::string_view argument, int kind = 1) {
  return fmt::format(R"({{"name": "{}", "arg": {{{}}}, "kind": {}}})", name, argument, kind);
}

std::string tensor_reference(std::string_view name) { return fmt::format(R"("as_tensor": {{"name": "{}"}})", name); }

void append(std::string& list, std::string_view element) { (list += list.empty() ? "" : ", ") += element; }

}  // namespace

std::string tensor_argument(std::string_view name, std::string_view value) {
  return named(name, tensor_reference(value));
}
std::string integer_argument(std::string_view name, std::int64_t value) {
  return named(name, fmt::format(R"("as_int": {})", value));
}
std::string integers_argument(std::string_view name, const std::vector<std::int64_t>& values) {
  return named(name, fmt::format(R"("as_ints": [{}])", fmt::join(values, ", ")));
}
std::string real_argument(std::string_view name, double value) {
  return named(name, fmt::format(R"("as_float": {})", value));
}
std::string flag_argument(std::string_view name, bool value) {
  return named(name, fmt::format(R"("as_bool": {})", value));
}
std::string text_argument(std::string_view name, std::string_view value) {
  return named(name, fmt::format(R"("as_string": "{}")", value));
}
std::string op_argument(std::string_view target) { return named("", fmt::format(R"("as_operator": "{}")", target)); }

void ProgramWriter::add_tensor(const WrittenTensor& tensor) {
  std::string sizes, strides;
  std::int64_t stride = 1;
  for (std::size_t i = tensor.sizes.size(); i-- > 0; stride *= tensor.sizes[i]) {
    sizes = fmt::format(R"({{"as_int": {}}}{}{})", tensor.sizes[i], sizes.empty() ? "" : ", ", sizes);
    strides = fmt::format(R"({{"as_int": {}}}{}{})", tensor.strides.empty() ? stride : tensor.strides[i],
                          strides.empty() ? "" : ", ", strides);
  }
  append(tensors_, fmt::format(R"("{}": {{"dtype": {}, "sizes": [{}], "requires_grad": false, )"
                               R"("device": {{"type": "cpu", "index": null}}, "strides": [{}], )"
                               R"("storage_offset": {{"as_int": 0}}, "layout": 7}})",
                               tensor.name, scalar_type(tensor.dtype), sizes, strides));
}

ProgramWriter& ProgramWriter::input(const WrittenTensor& tensor) {
  add_tensor(tensor);
  const std::string reference = fmt::format("{{{}}}", tensor_reference(tensor.name));
  append(inputs_, reference);
  append(input_specs_, fmt::format(R"({{"user_input": {{"arg": {}}}}})", reference));
  return *this;
}

ProgramWriter& ProgramWriter::token(std::string_view name) {
  add_tensor({std::string(name), f32, {0}});
  append(inputs_, fmt::format("{{{}}}", tensor_reference(name)));
  append(input_specs_, fmt::format(R"({{"token": {{"arg": {{"name": "{}"}}}}}})", name));
  return *this;
}

ProgramWriter& ProgramWriter::node(std::string_view target, const std::vector<std::string>& arguments,
                                   const std::vector<WrittenTensor>& results) {
  std::string outputs;
  for (const WrittenTensor& result : results) {
    add_tensor(result);
    append(outputs, fmt::format("{{{}}}", tensor_reference(result.name)));
  }
  const std::string whole =
      target.starts_with("torch.") ? std::string(target) : fmt::format("torch.ops.aten.{}.default", target);
  append(nodes_, fmt::format(R"({{"target": "{}", "inputs": [{}], "outputs": [{}], "metadata": {{}}, )"
                             R"("is_hop_single_tensor_return": null, "name": "{}"}})",
                             whole, fmt::join(arguments, ", "), outputs,
                             results.empty() ? std::string(target) : results[0].name));
  return *this;
}

ProgramWriter& ProgramWriter::outputs(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string reference = fmt::format("{{{}}}", tensor_reference(name));
    append(outputs_, reference);
    append(output_specs_, fmt::format(R"({{"user_output": {{"arg": {}}}}})", reference));
  }
  return *this;
}

ProgramWriter& ProgramWriter::token_output(std::string_view name) {
  append(outputs_, fmt::format("{{{}}}", tensor_reference(name)));
  append(output_specs_, fmt::format(R"({{"token": {{"arg": {{"name": "{}"}}}}}})", name));
  return *this;
}

std::filesystem::path ProgramWriter::write() const {
  const std::string json = fmt::format(
      R"({{"graph_module": {{"graph": {{"inputs": [{}], "outputs": [{}], "nodes": [{}], "tensor_values": {{{}}}, )"
      R"("sym_int_values": {{}}, "sym_bool_values": {{}}, "is_single_tensor_return": false, )"
      R"("custom_obj_values": {{}}, "sym_float_values": {{}}}}, )"
      R"("signature": {{"input_specs": [{}], "output_specs": [{}]}}, "module_call_graph": [], "metadata": {{}}, )"
      R"("treespec_namedtuple_fields": {{}}}}, "opset_version": {{"aten": 10}}, "range_constraints": {{}}, )"
      R"("schema_version": {{"major": 8, "minor": 20}}, "verifiers": [], "torch_version": "2.15.0", )"
      R"("guards_code": []}})",
      inputs_, outputs_, nodes_, tensors_, input_specs_, output_specs_);
  return write_bytes(zip_bytes({{"model/archive_format", "pt2"},
                                {"model/archive_version", "0"},
                                {"model/models/model.json", json},
                                {"model/data/weights/model_weights_config.json", R"({"config": {}})"},
                                {"model/data/constants/model_constants_config.json", R"({"config": {}})"}}),
                     "model.pt2");
}

}  // namespace lathe::test
