#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The parts of a program of torch.export that Lathe reads.
namespace lathe::pt2 {

/// A version of the format: {8, 20} is 8.20.
using SchemaVersion = std::pair<std::int64_t, std::int64_t>;

struct TestedVersion {
  SchemaVersion version;
  std::string_view torch;  ///< the releases that write it
};

/// The versions that are tested, in order. Releases before torch 2.9 store weights by pickle.
inline constexpr TestedVersion tested_versions[] = {
    {{8, 14}, "2.9"}, {{8, 15}, "2.10"}, {{8, 17}, "2.11"}, {{8, 20}, "2.12 to 2.15"}};

/// A size of a tensor: a number, or an expression of sympy: "Mul(Integer(2), Symbol('s77'))".
using SizeText = std::variant<std::int64_t, std::string>;

struct TensorMeta {
  std::int64_t dtype = 0;   ///< a number of the format's enum
  std::int64_t layout = 0;  ///< 7: strided
  std::vector<SizeText> sizes, strides;
  SizeText offset = std::int64_t{0};  ///< of the first element in its storage, in elements
  bool requires_grad = false;
};

struct GraphPart;

/// A number in a list of sizes, or the name of a value.
using SizeArgument = std::variant<std::int64_t, std::string>;

/// An argument or a result of a node.
struct Argument {
  enum class Kind : std::uint8_t {
    none,
    value,   ///< a tensor or a symbolic number, by name
    values,  ///< tensors; an empty name is an absent one
    integer,
    integers,
    real,
    reals,
    boolean,
    booleans,
    text,
    texts,
    sizes,
    dtype,
    layout,
    harmless,  ///< a device or a memory format, which have no effect on elements
    graph,
    op,    ///< the name of an op, such as the one that with_effects calls
    other  ///< a kind that no supported op takes
  };
  Kind kind = Kind::none;
  std::string text = {};  ///< of a text, the name of a value, or the kind in the file: "as_complex"
  std::vector<std::string> texts = {};
  std::int64_t integer = 0;
  double real = 0;
  std::vector<std::int64_t> integers = {};
  std::vector<double> reals = {};
  std::vector<SizeArgument> sizes = {};
  std::shared_ptr<const GraphPart> graph = {};
};

struct NamedArgument {
  std::string name;
  Argument value;
};

struct NodePart {
  std::string target;  ///< "torch.ops.aten.linear.default"
  std::string name;    ///< "linear_1"
  std::string module;  ///< path of the innermost module: "layers.0.attn"
  std::vector<NamedArgument> arguments;
  std::vector<Argument> results;
};

struct GraphPart {
  std::vector<Argument> inputs, outputs;
  std::vector<NodePart> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;
};

/// The meaning of an input of the graph.
struct InputSpec {
  enum class Kind : std::uint8_t { user, parameter, buffer, constant, fixed, token, object };
  Kind kind = Kind::user;
  Argument value;
  std::string target;  ///< name in the state dict, or of a constant
  bool is_persistent = true;
};

/// The meaning of an output of the graph.
struct OutputSpec {
  enum class Kind : std::uint8_t { user, loss, buffer, other };
  Kind kind = Kind::user;
  Argument value;
  std::string target;  ///< the buffer that is updated, or the kind in the file
};

/// Limits of a symbol; absent ones are infinite.
struct SymbolRange {
  std::optional<std::int64_t> lowest, highest;
};

struct ExportedProgram {
  SchemaVersion version;
  std::string torch_version;
  GraphPart graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, SymbolRange, std::less<>> ranges;  ///< by symbol: "s77"
  std::vector<std::string> guards;                         ///< conditions on sizes, as Python code
  std::vector<std::string> output_names;                   ///< names of the user outputs
};

/// Reads the text of models/NAME.json; `where` is used in errors: "model.pt2: models/model.json". Throws UserErrors
/// [import_unsupported] for a version that is not tested, [import_file] for a field that the format does not have or
/// that is missing, and [json].
ExportedProgram read_program(std::string_view text, const std::string& where);

}  // namespace lathe::pt2
