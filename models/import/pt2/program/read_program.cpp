#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "models/import/pt2/program/effects.h"
#include "models/import/pt2/program/read_arguments.h"
#include "models/import/pt2/program/tree_names.h"
#include "runtime/files/strict_json.h"

namespace lathe::pt2 {

namespace {

constexpr int max_json_depth = 200;  // of the JSON, for graphs in graphs

std::string version_text(const SchemaVersion& version) { return fmt::format("{}.{}", version.first, version.second); }

/// Returns the version of the schema, which PyTorch raises in most releases.
SchemaVersion read_version(const JsonFields& program, const std::string& where) {
  const JsonFields json = program.at("schema_version");
  json.require_known({"major", "minor"});
  const SchemaVersion version{json.at("major").integer(), json.at("minor").integer()};
  std::string tested;
  for (const TestedVersion& each : tested_versions) {
    if (each.version == version) return version;
    tested += fmt::format("{}{} (torch {})", tested.empty() ? "" : ", ", version_text(each.version), each.torch);
  }
  const std::string writer =
      program.has("torch_version") ? fmt::format(", written by torch {}", program.at("torch_version").text()) : "";
  throw UserError(
      fmt::format("{} has version {} of the schema of torch.export{}", where, version_text(version), writer),
      "import_unsupported",
      fmt::format("Lathe reads the versions {}: export the model again with a listed release{}", tested,
                  version < tested_versions[0].version ? "; older releases store weights by pickle" : ""));
}

InputSpec read_input_spec(const JsonFields& json) {
  const auto [kind, value] = json.kind();
  InputSpec spec;
  const auto take_tensor = [&](InputSpec::Kind as, std::string_view target) {
    spec.kind = as;
    spec.value.kind = Argument::Kind::value;
    spec.value.text = read_name(value.at("arg"));
    spec.target = value.at(target).text();
  };
  if (kind == "user_input") {
    value.require_known({"arg"});
    spec.value = read_argument(value.at("arg"));
  } else if (kind == "parameter") {
    value.require_known({"arg", "parameter_name"});
    take_tensor(InputSpec::Kind::parameter, "parameter_name");
  } else if (kind == "buffer") {
    value.require_known({"arg", "buffer_name", "persistent"});
    take_tensor(InputSpec::Kind::buffer, "buffer_name");
    spec.is_persistent = value.at("persistent").boolean();
  } else if (kind == "tensor_constant") {
    value.require_known({"arg", "tensor_constant_name"});
    take_tensor(InputSpec::Kind::constant, "tensor_constant_name");
  } else if (kind == "constant_input") {
    // A value of Python, such as None or True, which is part of the nodes.
    value.require_known({"name", "value"});
    spec.kind = InputSpec::Kind::fixed;
    spec.target = value.at("name").text();
  } else if (kind == "custom_obj" || kind == "token") {
    spec.kind = kind == "token" ? InputSpec::Kind::token : InputSpec::Kind::object;
    spec.target = value.at("arg").at("name").text();
  } else {
    json.fail(fmt::format("has the unknown kind {}", kind));
  }
  return spec;
}

OutputSpec read_output_spec(const JsonFields& json) {
  const auto [kind, value] = json.kind();
  OutputSpec spec;
  if (kind == "user_output") {
    value.require_known({"arg"});
    spec.value = read_argument(value.at("arg"));
  } else if (kind == "loss_output" || kind == "buffer_mutation") {
    spec.kind = kind == "loss_output" ? OutputSpec::Kind::loss : OutputSpec::Kind::buffer;
    spec.value.kind = Argument::Kind::value;
    spec.value.text = read_name(value.at("arg"));
    if (kind == "buffer_mutation") spec.target = value.at("buffer_name").text();
  } else {
    spec.kind = OutputSpec::Kind::other;
    spec.target = kind;
  }
  return spec;
}

std::map<std::string, SymbolRange, std::less<>> read_ranges(const JsonFields& json) {
  std::map<std::string, SymbolRange, std::less<>> ranges;
  for (const auto& [symbol, limits] : json.members()) {
    limits.require_known({"min_val", "max_val"});
    SymbolRange& range = ranges[symbol];
    if (limits.has("min_val")) range.lowest = limits.at("min_val").integer();
    if (limits.has("max_val")) range.highest = limits.at("max_val").integer();
  }
  return ranges;
}

/// The first entry of the calls is the whole model. Its treespec is that of its Python results.
std::vector<std::string> read_output_names(const JsonFields& calls, std::size_t count) {
  for (const JsonFields& call : calls.elements())
    if (call.at("fqn").text().empty() && call.has("signature"))
      return tree_names(call.at("signature").at("out_spec").text(), count);
  return tree_names("", count);
}

}  // namespace

ExportedProgram read_program(std::string_view text, const std::string& where) {
  const nlohmann::json parsed = parse_strict_json(text, where, max_json_depth);
  const JsonFields json(parsed, where + ":");
  ExportedProgram program;
  program.version = read_version(json, where);
  // The verifiers name dialects.
  json.require_known({"graph_module", "opset_version", "range_constraints", "schema_version", "verifiers",
                      "torch_version", "guards_code"});
  program.torch_version = json.at("torch_version").text();
  const JsonFields module = json.at("graph_module"), signature = module.at("signature");
  module.require_known({"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  signature.require_known({"input_specs", "output_specs"});
  program.graph = read_graph(module.at("graph"));
  for (const JsonFields& spec : signature.at("input_specs").elements())
    program.inputs.push_back(read_input_spec(spec));
  for (const JsonFields& spec : signature.at("output_specs").elements())
    program.outputs.push_back(read_output_spec(spec));
  for (const JsonFields& guard : json.at("guards_code").elements()) program.guards.push_back(guard.text());
  program.ranges = read_ranges(json.at("range_constraints"));
  const auto users = std::ranges::count_if(program.outputs, [](const OutputSpec& output) {
    return output.kind == OutputSpec::Kind::user || output.kind == OutputSpec::Kind::loss;
  });
  program.output_names = read_output_names(module.at("module_call_graph"), static_cast<std::size_t>(users));
  remove_effects(program);
  return program;
}

}  // namespace lathe::pt2
