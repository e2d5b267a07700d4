#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "models/import/import.h"
#include "tests/import/support/archive_writer.h"
#include "tests/import/support/model_writer.h"
#include "tests/import/support/program_case.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

constexpr const char *graph = "models/model.json", *weights = "data/weights/model_weights_config.json";

std::string error_of(const std::filesystem::path& file, const importing::ImportOptions& options = {}) {
  try {
    importing::import_graph(file, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}
std::string error_of(const ProgramFile& file, const ZipForm& form = {}) { return error_of(file.write(form)); }

}  // namespace

TEST_CASE("program errors: a copy of a program has none, also in the ZIP64 form and with a comment") {
  CHECK(error_of(ProgramFile("mlp")) == "no error");
  CHECK(error_of(ProgramFile("mlp"), {.is_zip64 = true}) == "no error");
  CHECK(error_of(ProgramFile("mlp"), {.comment = "text after the directory"}) == "no error");
}

TEST_CASE("program errors: all ops and arguments that are not supported are listed at once, with their nodes") {
  ProgramFile file("mlp");
  file.replace(graph, "torch.ops.aten.relu.default", "torch.ops.aten.nonzero.default");
  file.replace(graph, "torch.ops.aten.linear.default", "torch.ops.custom.linear.default");
  file.replace(graph, "{\"name\": \"other\", \"arg\": {\"as_tensor\": {\"name\": \"b_offsets\"}}",
               "{\"name\": \"speed\", \"arg\": {\"as_int\": 3}");
  CHECK(error_of(file) ==
        "model.pt2 has 3 parts that Lathe does not import  [import_unsupported]\n"
        "  the argument speed of aten.add.Tensor: /add\n"
        "  the op aten.nonzero: /relu\n"
        "  the op custom.linear: /fc1/linear");
}

TEST_CASE("program errors: writes in place that other values see") {
  ProgramFile file("mlp");
  file.replace(graph, "torch.ops.aten.relu.default", "torch.ops.aten.relu_.default");
  CHECK(error_of(file) == "no error");  // the operand is the result of linear, which is not read again
  ProgramFile written("mlp");
  written.replace(graph, "torch.ops.aten.linear.default", "torch.ops.aten.alias.default");
  written.replace(graph, "{\"name\": \"input\", \"arg\"", "{\"name\": \"self\", \"arg\"");
  written.replace(graph, "torch.ops.aten.relu.default", "torch.ops.aten.relu_.default");
  CHECK_THAT(error_of(written),
             Contains("the op aten.relu_, which writes to an input, a parameter, or a tensor with views that are "
                      "read later: /relu\n") &&
                 Contains("call run_decompositions()"));
  // The write to a detached tensor changes the result of linear, but not its gradient.
  ProgramFile detached("mlp");
  detached.replace(graph, "torch.ops.aten.relu.default", "torch.ops.aten.detach.default");
  detached.replace(
      graph, R"(torch.ops.aten.mul.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "linear_1"}})",
      R"(torch.ops.aten.mul_.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "relu"}})");
  detached.replace(graph, R"({"as_tensor": {"name": "mul"}}, "kind": 1})",
                   R"({"as_tensor": {"name": "linear"}}, "kind": 1})");
  CHECK_THAT(error_of(detached),
             Contains("the op aten.mul_.Tensor, which writes to an input, a parameter, or a tensor "
                      "with views that are read later: "));
  // The last sum reads rows of the buffer from before the write.
  ProgramFile late("written");
  late.replace(graph, R"({"name": "index_copy_"}}, "kind": 1}, {"name": "dim", "arg": {"as_ints": [1])",
               R"({"name": "slice_1"}}, "kind": 1}, {"name": "dim", "arg": {"as_ints": [1])");
  CHECK_THAT(error_of(late), Contains("the op aten.index_copy_, which writes to an input, a parameter, or a tensor "
                                      "with views that are read later: /index_copy_\n"));
  // A slice is read after another slice of the same value was written.
  ProgramFile sliced("sliced");
  sliced.replace(graph, R"({"as_tensor": {"name": "div_"}}, {"as_tensor": {"name": "sum_2"}})",
                 R"({"as_tensor": {"name": "select"}}, {"as_tensor": {"name": "sum_2"}})");
  CHECK_THAT(error_of(sliced),
             Contains("the op aten.fill_.Scalar, which writes to an input, a parameter, or a tensor "
                      "with views that are read later: "));
  // A slice that is defined as a slice of itself ends in an error, not in an endless search for the value around it.
  ProgramFile cyclic("sliced");
  cyclic.replace(graph, R"("outputs": [{"as_tensor": {"name": "slice_8"}}])",
                 R"("outputs": [{"as_tensor": {"name": "slice_7"}}])");
  cyclic.replace(graph, R"({"as_tensor": {"name": "slice_8"}}, "kind": 1}, {"name": "src")",
                 R"({"as_tensor": {"name": "slice_7"}}, "kind": 1}, {"name": "src")");
  CHECK(error_of(cyclic) != "no error");
  ProgramFile shared("written");
  shared.replace(weights, "\"path_name\": \"weight_0\"", "\"path_name\": \"weight_1\"");
  CHECK_THAT(error_of(shared), Contains("model.pt2: 'total' is written in place, and 'rows' has the same memory"));
}

TEST_CASE("program errors: a loop and a scan without one of their states") {
  ProgramFile loop("control");
  loop.replace(graph, R"({"as_tensors": [{"name": "detach_"}, {"name": "detach"}]})",
               R"({"as_optional_tensors": [{"as_tensor": {"name": "detach_"}}, {"as_none": true}]})");
  CHECK_THAT(error_of(loop), Contains("/while_loop: while_loop: operand 1 is missing  [import_operand]"));
  ProgramFile scan("control");
  scan.replace(graph, R"({"as_tensors": [{"name": "new_zeros"}]})",
               R"({"as_optional_tensors": [{"as_none": true}]})");
  CHECK_THAT(error_of(scan), Contains("/scan: scan: operand 0 is missing  [import_operand]"));
}

TEST_CASE("program errors: arguments of composite ops that are not supported") {
  const auto error = [](const char* program, const char* from, const char* to) {
    return error_of(ProgramFile(program).replace(graph, from, to));
  };
  CHECK_THAT(error("vision", R"("padding_mode","arg":{"as_int":2})", R"("padding_mode","arg":{"as_int":3})"),
             Contains("the argument padding_mode is 3  [import_attribute]"));
  CHECK_THAT(error("vision", R"("kernel_size","arg":{"as_ints":[3,2]})", R"("kernel_size","arg":{"as_ints":[3,0]})"),
             Contains("the argument kernel_size is not two numbers of 1 or more  [import_attribute]"));
  CHECK_THAT(error("fourier", R"("as_string":"ortho")", R"("as_string":"other")"),
             Contains("the argument norm is 'other'  [import_attribute]"));
  CHECK_THAT(error("matrices", R"(torch.ops.aten.trace.default","inputs":[)",
                   R"(torch.ops.aten.linalg_matrix_norm.str_ord","inputs":[)"
                   R"({"name":"ord","arg":{"as_string":"nuc"},"kind":1},)"),
             Contains("the matrix norm 'nuc' is not supported; fro is  [import_unsupported]"));
  CHECK_THAT(error("recurrent", R"("num_layers","arg":{"as_int":2})", R"("num_layers","arg":{"as_int":3})"),
             Contains("16 weights for 6 layers and directions  [import_operand]"));
  CHECK_THAT(error("losses", R"("reduction","arg":{"as_int":1})", R"("reduction","arg":{"as_int":3})"),
             Contains("the argument reduction is not 0, 1 or 2  [import_attribute]"));
}

TEST_CASE("program errors: a condition on the values of a run") {
  CHECK_THAT(error_of(ProgramFile("floats").replace(graph, "torch.ops.aten.signbit.default",
                                                    "torch.ops.aten._assert_async.default")),
             Contains("the program checks values of a run") && Contains("set_default_validate_args(False)"));
}

TEST_CASE("program errors: ops and arguments have the names of the file, also those of aliases") {
  CHECK_THAT(error_of(ProgramFile("aliases").replace(graph, R"({"name":"other","arg":{"as_int":2})",
                                                     R"({"name":"speed","arg":{"as_int":2})")),
             Contains("the argument speed of aten.multiply.Tensor: /multiply"));
  for (const char* op : {"nextafter", "special_zeta", "linalg_qr", "linalg_svd", "matrix_exp"})
    CHECK_THAT(error_of(ProgramFile("floats").replace(graph, "torch.ops.aten.fmax.default",
                                                      "torch.ops.aten." + std::string(op) + ".default")),
               Contains("the op aten." + std::string(op) + ": /fmax"));
}

TEST_CASE("program errors: another version of the format names both") {
  CHECK(error_of(ProgramFile("mlp").replace(graph, "\"minor\": 20", "\"minor\": 21")) ==
        "model.pt2: model/models/model.json has version 8.21 of the schema of torch.export, written by torch "
        "2.15.0+cu132  [import_unsupported]\n"
        "  Lathe reads the versions 8.14 (torch 2.9), 8.15 (torch 2.10), 8.17 (torch 2.11), 8.20 (torch 2.12 to "
        "2.15): export the model again with a listed release");
  CHECK_THAT(
      error_of(ProgramFile("mlp").replace(graph, "\"minor\": 20", "\"minor\": 8")),
      Contains("has version 8.8") && Contains("with a listed release; older releases store weights by pickle"));
  CHECK_THAT(error_of(ProgramFile("mlp").set("archive_version", "1")), Contains("archive_version is '1'"));
  CHECK_THAT(error_of(ProgramFile("mlp").set("byteorder", "big")), Contains("byteorder is 'big'"));
}

TEST_CASE("program errors: compressed files are refused by name") {
  CHECK_THAT(error_of(ProgramFile("mlp"), {.method_of = "model/data/weights/weight_0"}),
             Contains("the file 'model/data/weights/weight_0' is compressed by deflate  [import_unsupported]"));
  CHECK_THAT(error_of(ProgramFile("mlp"), {.method_of = "model/models/model.json", .method = 93}),
             Contains("is compressed by Zstandard"));
}

TEST_CASE("program errors: files of other kinds") {
  CHECK_THAT(error_of(write_bytes("no archive", "model.pt2")), Contains("this is not a zip file  [import_file]"));
  CHECK_THAT(error_of(write_bytes("", "model.pt2")), Contains("[import_file]"));
  CHECK_THAT(error_of(write_bytes(zip_bytes({{"model/data.pkl", "x"}}), "model.pt2")),
             Contains("has no file archive_format"));
  CHECK_THAT(error_of(write_bytes(zip_bytes({{"serialized_exported_program.json", "{}"}}), "model.pt2")),
             Contains("is a program of torch.export in an archive of an older torch  [import_unsupported]"));
  CHECK_THAT(error_of(ProgramFile("mlp").remove(graph)), Contains("has no program in model/models/"));
  CHECK_THAT(error_of(ProgramFile("mlp").set("models/other.json", "{}")),
             Contains("has the programs 'model' and 'other'"));
}

TEST_CASE("program errors: tensors that are stored by pickle") {
  CHECK_THAT(error_of(ProgramFile("mlp").replace(weights, "\"use_pickle\": false", "\"use_pickle\": true")),
             Contains("the tensor 'fc1.weight' is stored by pickle") && Contains("[import_unsupported]"));
  CHECK_THAT(error_of(ProgramFile("mlp").set("data/weights/model.pt", "x")),
             Contains("'model/data/weights/model.pt' are stored by pickle"));
}

TEST_CASE("program errors: tensors that are missing or outside of their file") {
  CHECK_THAT(error_of(ProgramFile("mlp").replace(weights, "\"fc1.weight\"", "\"fc1.other\"")),
             Contains("the tensor 'fc1.weight' is not in the archive  [import_file]"));
  CHECK_THAT(error_of(ProgramFile("mlp").remove("data/weights/weight_0")),
             Contains("there is no file 'model/data/weights/weight_0'"));
  CHECK_THAT(
      error_of(ProgramFile("mlp").set("data/weights/weight_0", std::string(100, '\0'))),
      Contains("the tensor 'fc1.weight', f32[8, 4] from element 0, is not in 'model/data/weights/weight_0', which "
               "has 100 bytes"));
  for (const char* offset : {"1", "-1", "9223372036854775807"})
    CHECK_THAT(error_of(ProgramFile("mlp").replace(weights, "\"storage_offset\": {\"as_int\": 0}",
                                                   "\"storage_offset\": {\"as_int\": " + std::string(offset) + "}")),
               Contains("is not in 'model/data/weights/weight_0'"));
  for (const char* size : {"9", "1099511627776", "-8"})
    CHECK_THAT(error_of(ProgramFile("mlp").replace(weights, "\"sizes\": [{\"as_int\": 8}",
                                                   "\"sizes\": [{\"as_int\": " + std::string(size) + "}")),
               Contains("[import_file]"));
  for (const char* stride : {"5", "-4", "4611686018427387904"})
    CHECK_THAT(error_of(ProgramFile("mlp").replace(weights, "\"strides\": [{\"as_int\": 4}",
                                                   "\"strides\": [{\"as_int\": " + std::string(stride) + "}")),
               Contains("is not in 'model/data/weights/weight_0'"));
}

TEST_CASE("program errors: a strided weight is read in the order of its dims") {
  ProgramFile file("mlp");
  file.replace(weights, "\"strides\": [{\"as_int\": 4}, {\"as_int\": 1}]",
               "\"strides\": [{\"as_int\": 1}, {\"as_int\": 8}]");
  const importing::ImportedGraph plain = importing::import_graph(ProgramFile("mlp").write()),
                                 strided = importing::import_graph(file.write());
  const HostTensor &a = plain.parameters.get("fc1.weight"), &b = strided.parameters.get("fc1.weight");
  for (std::int64_t i = 0; i < 8; ++i)
    for (std::int64_t k = 0; k < 4; ++k) CHECK(b.at({i, k}) == a.get(i + 8 * k));
}

TEST_CASE("program errors: fields and names that are wrong") {
  CHECK_THAT(error_of(ProgramFile("mlp").replace(graph, "\"opset_version\"", "\"speed\": 1, \"opset_version\"")),
             StartsWith("model.pt2: model/models/model.json: has the unknown field 'speed'  [import_file]"));
  CHECK_THAT(
      error_of(ProgramFile("mlp").replace(graph, "\"target\": \"torch.ops.aten.relu.default\"", "\"target\": 3")),
      Contains("graph.nodes[1].target is of the kind number, not string  [import_file]"));
  CHECK_THAT(error_of(ProgramFile("mlp").replace(graph, "{\"as_tensor\": {\"name\": \"relu\"}}, \"kind\"",
                                                 "{\"as_tensor\": {\"name\": \"later\"}}, \"kind\"")),
             Contains("the operand 'later' is not defined before the node  [import_file]"));
  CHECK_THAT(error_of(ProgramFile("mlp").replace(graph, "\"outputs\": [{\"as_tensor\": {\"name\": \"relu\"}}]",
                                                 "\"outputs\": [{\"as_tensor\": {\"name\": \"linear\"}}]")),
             Contains("the value 'linear' is defined twice"));
  CHECK_THAT(error_of(ProgramFile("mlp").set(graph, "{")), Contains("[json]"));
}

TEST_CASE("program errors: a result of another type than in the file") {
  ProgramFile file("mlp");
  file.replace(graph, "\"relu\": {\"dtype\": 7", "\"relu\": {\"dtype\": 8");
  CHECK_THAT(error_of(file),
             StartsWith("model.pt2:/relu: relu: the result is f32[x_0, 8], and f64[x_0, 8] in the file  "
                        "[import_file]") &&
                 Contains("if the export ran after torch.set_default_dtype()"));
}

TEST_CASE("program errors: tokens that ops of other kinds take") {
  ProgramFile file("mlp");
  file.replace(graph, R"({"buffer": {"arg": {"name": "b_scale"}, "buffer_name": "scale", "persistent": true}})",
               R"({"token": {"arg": {"name": "b_scale"}}})");
  CHECK_THAT(error_of(file),
             Contains("a token of effects: b_scale") && Contains("remove such ops before the export"));
}

TEST_CASE("program errors: a size that is no polynomial of the sizes of inputs") {
  ProgramFile file("mlp");
  file.replace(graph, "Symbol('s77', positive=True, integer=True)", "FloorDiv(Symbol('s77'), Integer(2))");
  CHECK_THAT(error_of(file), Contains("dim 0 of the input 'x' is FloorDiv(") && Contains("[import_size]"));
}

TEST_CASE("program errors: an input that is fixed at import has the type in the file") {
  const auto error = [&](const char* name, const HostTensor& value) {
    return error_of(program_folder("mlp") / "model.pt2", {.inputs = {{name, value}}});
  };
  CHECK(error("x", HostTensor(f32, {2, 4})) == "no error");
  CHECK_THAT(error("x", HostTensor(f32, {2, 3})), Contains("[argument_shape]"));
  CHECK_THAT(error("x", HostTensor(i64, {2, 4})), Contains("[argument_dtype]"));
  CHECK_THAT(error("z", HostTensor(f32, {2})), Contains("[argument_unknown]"));
}
