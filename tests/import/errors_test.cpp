#include <catch2/catch.hpp>
#include <fstream>

#include "ir/support/error.h"
#include "models/import/import.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// A tensor "w" f32[2] with external data.
Message external_tensor(std::string_view location, std::string_view offset, std::string_view length) {
  Message tensor;
  tensor.integer(1, 2).integer(2, 1).text(8, "w").integer(14, 1);
  for (const auto& [key, value] : {std::pair("location", location), {"offset", offset}, {"length", length}})
    if (!value.empty()) tensor.message(13, Message().text(1, key).text(2, value));
  return tensor;
}

std::filesystem::path write_external(std::string_view location, std::string_view offset, std::string_view length) {
  ModelWriter model;
  model.input("x", {"2"}).initializer(external_tensor(location, offset, length));
  model.node("sum", "Add", {"x", "w"}, {"y"}).output("y");
  const std::filesystem::path path = model.write();
  std::ofstream(path.parent_path() / "data.bin", std::ios::binary) << std::string(16, '\0');
  return path;
}

}  // namespace

TEST_CASE("errors: all ops and attributes that are not supported are listed at once, with their nodes") {
  ModelWriter model;
  model.input("x", {"n"}).import("com.example", 2);
  model.node("/a/NonZero", "NonZero", {"x"}, {"i"}).node("/b/NonZero", "NonZero", {"x"}, {"j"});
  model.node("/Relu", "Relu", {"x"}, {"r"}, {attribute("speed", 3)});
  model.node("custom", "Fuse", {"x"}, {"f"}, {}, "com.example");
  model.node("other", "Split", {"x"}, {"s"}, {}, "ai.onnx.ml").output("r");
  CHECK(import_error(model) ==
        "model.onnx has 4 parts that Lathe does not import  [import_unsupported]\n"
        "  ai.onnx.ml.Split, whose domain has no version in the file: other\n"
        "  the attribute speed of Relu: /Relu\n"
        "  the op NonZero: /a/NonZero, /b/NonZero\n"
        "  the op com.example.Fuse: custom");
}

TEST_CASE("errors: an op of another opset names the supported ones") {
  ModelWriter model(6);
  model.input("x", {"n", "m"}).node("/Add", "Add", {"x", "x"}, {"y"}).output("y");
  CHECK_THAT(import_error(model),
             Contains("the op Add of opset 6, which is supported in 7 to 27: /Add") &&
                 Contains("export the model with opset 13 or newer, or convert it with onnx.version_converter"));
  ModelWriter older(10);
  older.input("x", {"n", "m"}).node("/Gelu", "Gelu", {"x"}, {"y"}).output("y");
  CHECK_THAT(import_error(older), Contains("the op Gelu of opset 10, which is supported in 20 to 27: /Gelu"));
  CHECK_THAT(import_error(ModelWriter(99)), Contains("uses opset 99 of ai.onnx"));
}

TEST_CASE("errors: a size that depends on values names the node and the value") {
  ModelWriter model;
  model.input("x", {"n"}).input("shape", {"2"}, 7);
  model.node("/head/Reshape", "Reshape", {"x", "shape"}, {"y"}).output("y");
  CHECK_THAT(import_error(model),
             StartsWith("model.onnx:/head/Reshape: Reshape: the shape depends on values that are "
                        "computed at run time  [import_size]"));
}

TEST_CASE("errors: a size that is no polynomial of dims is not guessed") {
  ModelWriter model;
  model.input("x", {"n"}).integers("two", {1}, {2});
  model.node("/Shape", "Shape", {"x"}, {"shape"}).node("/Max", "Max", {"shape", "two"}, {"most"});
  model.node("/Expand", "ConstantOfShape", {"most"}, {"y"}).output("y");
  CHECK_THAT(import_error(model), StartsWith("model.onnx:/Expand: ConstantOfShape: the shape depends on values"));
}

TEST_CASE("errors: rules of the built ops name the node") {
  ModelWriter model;
  model.input("x", {"3", "4"}).floats("w", {5, 2}, std::vector<float>(10, 1));
  model.node("/fc/MatMul", "MatMul", {"x", "w"}, {"y"}).output("y");
  CHECK_THAT(import_error(model), StartsWith("model.onnx:/fc/MatMul: matmul: ") && Contains("[matmul_inner]"));
}

TEST_CASE("errors: operands and attributes of the wrong kind") {
  ModelWriter missing;
  missing.input("x", {"n"}).node("/Add", "Add", {"x"}, {"y"}).output("y");
  CHECK_THAT(import_error(missing), Contains("model.onnx:/Add: Add: operand 1 is missing  [import_operand]"));
  ModelWriter kind;
  kind.input("x", {"n", "4"}).node("/Softmax", "Softmax", {"x"}, {"y"}, {text_attribute("axis", "1")}).output("y");
  CHECK_THAT(import_error(kind), Contains("the attribute axis is a text, not an integer  [import_attribute]"));
  ModelWriter unknown;
  unknown.input("x", {"n"}).node("/Exp", "Exp", {"z"}, {"y"}).output("y");
  CHECK_THAT(import_error(unknown), Contains("the operand 'z' is not defined before the node  [import_file]"));
  ModelWriter second;
  second.input("x", {"n"}).node("/Relu", "Relu", {"x"}, {"y", "at"});
  CHECK_THAT(import_error(second), Contains("result 1, 'at', is not supported"));
}

TEST_CASE("errors: types that Lathe does not have") {
  ModelWriter model;
  model.input("text", {"n"}, 8).node("/Identity", "Identity", {"text"}, {"y"}).output("y");
  CHECK_THAT(import_error(model), Contains("the input 'text' has elements of type STRING  [import_dtype]"));
}

TEST_CASE("errors: external data outside of the folder or the file") {
  CHECK(import_error(write_external("data.bin", "8", "8")) == "no error");
  CHECK(import_error(write_external("data.bin", "", "")) == "no error");
  for (const char* location : {"../data.bin", "/etc/hostname", "a/../../b", ""})
    CHECK_THAT(import_error(write_external(location, "0", "8")),
               Contains("outside of the model's folder  [import_external]"));
  CHECK_THAT(import_error(write_external("data.bin", "12", "8")),
             Contains("8 bytes at byte 12 are not in 'data.bin'"));
  CHECK_THAT(import_error(write_external("data.bin", "18446744073709551615", "8")), Contains("[import_external]"));
  CHECK_THAT(import_error(write_external("data.bin", "-1", "8")), Contains("is '-1', not a number"));
  CHECK_THAT(import_error(write_external("data.bin", "0", "4")),
             Contains("has 4 bytes of data for 2 elements of f32"));
  CHECK_THAT(import_error(write_external("none.bin", "0", "8")), Contains("[file_open]"));
}

TEST_CASE("errors: a function that calls itself ends") {
  ModelWriter model;
  model.input("x", {"n"}).import("local", 1);
  model.function(Message()
                     .text(1, "Again")
                     .text(4, "a")
                     .text(5, "b")
                     .message(7, node_message("call", "Again", {"a"}, {"b"}, {}, "local"))
                     .message(9, Message().text(1, "local").integer(2, 1))
                     .text(10, "local"));
  model.node("start", "Again", {"x"}, {"y"}, {}, "local").output("y");
  CHECK_THAT(import_error(model), Contains("too many nested branches and calls"));
}

TEST_CASE("errors: an input that is fixed at import has the type in the file") {
  const std::filesystem::path path = ModelWriter().input("x", {"2"}).output("x").write();
  const auto error = [&](const char* name, const HostTensor& value) {
    try {
      importing::import_graph(path, {.inputs = {{name, value}}});
    } catch (const UserError& e) {
      return e.label();
    }
    return std::string("none");
  };
  CHECK(error("x", HostTensor(f32, {2})) == "none");
  CHECK(error("x", HostTensor(f32, {3})) == "argument_shape");
  CHECK(error("x", HostTensor(i64, {2})) == "argument_dtype");
  CHECK(error("z", HostTensor(f32, {2})) == "argument_unknown");
}
