#include "models/export/export.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/export/onnx/external_data.h"
#include "models/export/onnx/graph_exporter.h"
#include "models/export/onnx/write_model.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe::exporting {

namespace {

constexpr std::uint64_t most_format_bytes = (std::uint64_t{1} << 31) - 1;

void write_to(AtomicFile& file, const onnx::WireMessage& message) {
  message.each_part([&](std::span<const std::byte> bytes) { file.write(bytes); });
}

/// Writes the values to a file of their own, which appears before the model that refers to it.
void write_two(onnx::ModelProto& model, const std::filesystem::path& path) {
  std::filesystem::path data_path = path;
  data_path += ".data";
  const std::string location = data_path.filename().string();
  const onnx::ExternalData data(*model.graph, location);
  const onnx::WireMessage message = onnx::encode(model);
  if (message.size() > most_format_bytes)
    throw UserError(fmt::format("{}: the graph has {} bytes without its values", path.string(), message.size()),
                    "export_large", "an ONNX file has at most 2 GiB: make large constants of the graph states");
  AtomicFile values(data_path), file(path);
  data.write(values);
  write_to(file, message);
  values.prepare();
  file.prepare();
  values.publish();
  file.publish();
}

}  // namespace

void write_onnx(const ir::Graph& graph, const Parameters& parameters, const std::filesystem::path& file,
                const OnnxOptions& options) {
  onnx::GraphExporter exporter(graph, parameters, options.opset);
  onnx::ModelProto model = exporter.model();
  const onnx::WireMessage message = onnx::encode(model);
  if (message.size() > std::min(options.most_bytes, most_format_bytes)) return write_two(model, file);
  AtomicFile out(file);
  write_to(out, message);
  out.commit();
}

}  // namespace lathe::exporting
