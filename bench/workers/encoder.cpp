// Runs an encoder from an ONNX file for bench/run_encoder.py: reads commands line by line, answers with lines of
// JSON.
//   bench_encoder [THREADS]
//   open FILE PRECISION   imports and compiles the file, with matmuls in f32 or bf16
//   sizes BATCH LENGTH    makes inputs [BATCH, LENGTH]: {"values": [...]}, the first 64 numbers of the result
//   run N                 runs it N times: {"seconds": [...]}
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <sstream>

#include "bench/serve_commands.h"
#include "bench/workers/executable_server.h"
#include "models/import/import.h"
#include "passes/transforms/dtypes/mixed_precision.h"

namespace {

using namespace lathe;

class Server : public bench::ExecutableServer {
 public:
  using ExecutableServer::ExecutableServer;

  std::string answer(const std::string& verb, std::istringstream& words) {
    if (verb == "open") {
      std::string file, precision;
      words >> file >> precision;
      load(file, parse_dtype(precision).value());
      return "{}";
    }
    std::int64_t batch = 0, length = 0;
    words >> batch >> length;
    set_sizes(batch, length);
    run();
    const auto values = outputs_.at("last_hidden_state").as<float>().first(64);
    return fmt::format("{{\"values\":[{}]}}", fmt::join(values, ","));
  }

 private:
  void load(const std::string& file, DType precision) {
    const importing::ImportedGraph imported = importing::import_graph(file);
    const ir::Graph graph = imported.graph.finish();
    open(precision == f32 ? graph : ir::mixed_precision(graph, precision), imported.parameters);
  }

  /// The inputs of bench/peers/encoder_worker.py: the last quarter of the first text is padding.
  void set_sizes(std::int64_t batch, std::int64_t length) {
    HostTensor tokens(i64, {batch, length}), mask(i64, {batch, length});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) {
      tokens.set_int(i, (i * 7919 + 13) % 30522);
      mask.set_int(i, i < length - length / 4 || i >= length ? 1 : 0);
    }
    inputs_.set("input_ids", std::move(tokens));
    inputs_.set("attention_mask", std::move(mask));
  }
};

}  // namespace

int main(int argc, char** argv) { return lathe::bench::serve_commands<Server>(argc, argv); }
