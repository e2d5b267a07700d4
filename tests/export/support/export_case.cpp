#include "tests/export/support/export_case.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/graph_exporter.h"
#include "models/export/onnx/write_model.h"
#include "tests/ops/samples.h"

namespace lathe::test {

namespace {

using ir::Sample;
using ir::test::Layout;
using ir::test::Sizes;

/// Removed when the tests end.
struct ExportFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("lathe-export-{}", static_cast<long>(::getpid()));
  ~ExportFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// Returns the tensor with a complex element as two reals.
HostTensor pairs_of(const HostTensor& tensor) {
  if (!is_complex(tensor.dtype())) return tensor;
  std::vector<std::int64_t> shape = tensor.shape();
  shape.push_back(2);
  HostTensor reals(real_part(tensor.dtype()), shape);
  std::copy_n(tensor.data(), tensor.bytes(), reals.data());
  return reals;
}

/// Returns the sample with f32 for f64.
Sample narrowed(Sample sample) {
  for (ir::SampleOperand& operand : sample.operands) {
    if (operand.dtype == f64) operand.dtype = f32;
    if (operand.dtype == c128) operand.dtype = c64;
  }
  for (const auto& [name, value] : sample.attrs.entries())
    if (const auto* dtype = std::get_if<DType>(&value); dtype && *dtype == f64) sample.attrs.set(name, f32);
  return sample;
}

void call(const std::function<void(const ExportSample&)>& f, const ir::Op& op, const Sample& sample,
          const std::string& description, Sizes sizes) {
  ir::Graph graph;
  try {
    graph = ir::test::sample_graph(op, sample, {.layout = Layout::contiguous, .sizes = sizes});
  } catch (const UserError&) {
    return;  // the op needs numbers, or f64
  }
  const Tensors arguments = ir::test::arguments_of(ir::test::random_operands(sample));
  const Tensors outputs = ir::interpret(graph, arguments);
  f({&op, description, std::move(graph), as_reals(arguments), as_reals(outputs)});
}

}  // namespace

Tensors as_reals(const Tensors& tensors) {
  Tensors all;
  for (const auto& [name, tensor] : tensors) all.set(name, pairs_of(tensor));
  return all;
}

std::filesystem::path new_file(const std::string& name) {
  static const ExportFolder all;
  static std::atomic<int> next = 0;
  const std::filesystem::path folder = all.path / std::to_string(next++);
  std::filesystem::create_directories(folder);
  return folder / name;
}

std::filesystem::path quickly_exported(const ir::Graph& graph, std::int64_t opset) {
  const Parameters none;
  const onnx::GraphExporter exporter(graph, none, opset);
  const onnx::ModelProto model = exporter.model();
  const std::filesystem::path file = new_file("model.onnx");
  std::ofstream out(file, std::ios::binary);
  onnx::encode(model).each_part([&](std::span<const std::byte> part) {
    out.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  });
  return file;
}

std::filesystem::path exported(const ir::Graph& graph, const Parameters& parameters,
                               const exporting::OnnxOptions& options) {
  const std::filesystem::path file = new_file("model.onnx");
  exporting::write_onnx(graph, parameters, file, options);
  return file;
}

std::pair<Parameters, Tensors> divided(const ir::Graph& graph, const Tensors& arguments) {
  std::pair<Parameters, Tensors> parts;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op == &ir::ops::input)
      parts.second.set(node.name, arguments.at(node.name));
    else
      parts.first.set(node.name, arguments.at(node.name));
  }
  return parts;
}

Tensors arguments_of(const ir::Graph& imported, const Parameters& parameters, const Tensors& inputs) {
  Tensors arguments;
  for (const ir::ValueId id : imported.arguments()) {
    const ir::Node& node = imported[id];
    arguments.set(node.name, node.op == &ir::ops::input ? inputs.at(node.name) : parameters.get(node.name));
  }
  return arguments;
}

void for_each_export_sample(const std::function<void(const ExportSample&)>& f) {
  ir::test::for_each_sample([&](const ir::Op& op, const Sample& sample, const std::string& description) {
    for (const bool is_narrow : {false, true})
      for (const Sizes sizes : {Sizes::numbers, Sizes::unknowns}) {
        if (sizes == Sizes::unknowns && sample.operands.empty()) continue;
        call(f, op, is_narrow ? narrowed(sample) : sample,
             fmt::format("{}{}{}", description, is_narrow ? " in f32" : "",
                         sizes == Sizes::unknowns ? " with symbolic dims" : ""),
             sizes);
      }
  });
}

}  // namespace lathe::test
