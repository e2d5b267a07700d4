#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

/// The parts of an ONNX file that Lathe reads. Texts and raw tensors refer to the memory of the file. Fields without
/// effect on results are read over: documentation, metadata, producer, shapes of intermediate values, quantization
/// annotations, device configurations and training info.
namespace lathe::onnx {

using Text = std::string_view;

/// The element types of the format, by their numbers in files.
enum class ElementType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16
};

struct TensorProto {
  Text name;
  std::vector<std::int64_t> dims;
  std::int64_t type = 0;                          ///< an ElementType, or another number
  std::optional<std::span<const std::byte>> raw;  ///< the elements, little-endian
  std::vector<std::int64_t> integers;             ///< of int32_data and int64_data
  std::vector<float> floats;
  std::vector<double> doubles;
  bool is_external = false;
  std::vector<std::pair<Text, Text>> external;  ///< location, offset, length, checksum
  std::uint64_t offset = 0;                     ///< of the message in the file
};

/// A size of an input: a number, a name, or neither.
struct DimProto {
  std::optional<std::int64_t> value;
  Text name;
};

struct ValueProto {
  Text name;
  std::int64_t type = 0;  ///< of the elements
  std::optional<std::vector<DimProto>> shape;
  std::string_view other_kind;  ///< "sequence", "map", "optional" or "sparse tensor"; empty for a tensor
};

struct GraphProto;

struct AttributeProto {
  enum class Kind : std::int32_t {
    undefined = 0,
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type = 13,
    types = 14
  };
  Text name;
  Kind kind = Kind::undefined;
  Text reference;  ///< name of the attribute of the enclosing function that has the value
  float real = 0;
  std::int64_t integer = 0;
  Text text;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<Text> texts;
  std::shared_ptr<const TensorProto> tensor;
  std::shared_ptr<const GraphProto> graph;
};

struct NodeProto {
  Text name, op, domain, overload;
  std::vector<Text> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  Text name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueProto> inputs, outputs;
};

/// A version of the operators of a domain.
struct OpsetProto {
  Text domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  Text name, domain, overload;
  std::vector<Text> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults;  ///< attributes with a default value
  std::vector<NodeProto> nodes;
  std::vector<OpsetProto> opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::vector<OpsetProto> opsets;
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

/// Reads the bytes of an ONNX file; `file_name` is used in errors. Throws UserErrors of WireReader, and [import_file]
/// for a field that the format does not have, a node without an op, or a model without a graph.
ModelProto read_model(std::span<const std::byte> file, std::string_view file_name);

/// Reads a file that is one TensorProto.
TensorProto read_tensor(std::span<const std::byte> file, std::string_view file_name);

}  // namespace lathe::onnx
