// Runs graphs from IR text for bench/run_imported.py: reads commands line by line, answers with lines of JSON.
//   bench_graph [THREADS]
//   open FILE             compiles the graph
//   sizes NAME=SIZE ...   makes arguments of the given sizes, and runs once: {}
//   run N                 runs it N times: {"seconds": [...]}
#include <fstream>
#include <sstream>

#include "bench/serve_commands.h"
#include "bench/workers/executable_server.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/text/parser.h"
#include "passes/check/made_up_value.h"

namespace {

using namespace lathe;

class Server : public bench::ExecutableServer {
 public:
  using ExecutableServer::ExecutableServer;

  std::string answer(const std::string& verb, std::istringstream& words) {
    std::string word;
    if (verb == "open") {
      words >> word;
      std::ostringstream text;
      text << std::ifstream(word).rdbuf();
      graph_ = ir::parse_graph(text.str(), word);
      open(graph_);
      return "{}";
    }
    DimBindings dims;
    while (words >> word) dims[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
    Tensors states;
    inputs_ = {};
    for (const ir::ValueId id : graph_.arguments()) {
      HostTensor value = ir::made_up_value(graph_, id, dims, 1);
      (graph_[id].op == &ir::ops::input ? inputs_ : states).set(graph_[id].name, std::move(value));
    }
    executable_->parameters().set(states);
    run();
    return "{}";
  }

 private:
  ir::Graph graph_;
};

}  // namespace

int main(int argc, char** argv) { return lathe::bench::serve_commands<Server>(argc, argv); }
