#include <algorithm>

#include "ir/support/visible.h"
#include "tests/tools/command.h"

using namespace lathe;
using test::run_lathe;
using test::Scratch;

namespace {

/// Returns a graph in which everything that a user can name is called `name`, or begins or ends with it.
std::string program(const std::string& name) {
  std::string text = R"(graph @"NAME"(
  input %"NAME": f32[n, d=4]                loc("NAME":3),
  parameter %"wNAME": f32[d=4, d=4]         loc("NAME":4),
  state %"rNAME": i64[]
) {
  %1 = linear %"NAME", %"wNAME"             name("linNAME")  loc("NAME":5 in "layer.NAME")
  %2 = transpose %1 {dim0=0, dim1=1}        loc("NAME":6 in "NAME")
  %scores = matmul %1, %2                   loc("NAME":7 in "NAME")
  %weights = softmax %scores {dim=-1}       loc("NAME":8)
  %one = constant {dtype=i64, shape=[], values=[1]}
  %next = add %"rNAME", %one
  output "weightsNAME" %weights
  update %"rNAME" <- %next
}
)";
  for (std::size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; at += name.size())
    text.replace(at, 4, name);
  return text;
}

auto lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("arbitrary bytes in names cannot control the terminal or end a line or comment", "[tools]") {
  const Scratch scratch;
  const std::string odd = scratch.write("odd.lathe", program(R"(x\x1b[31m\n#error\x0d*/\xc2\x9b2J\xe2\x80\xa8\xff)"));
  const std::string plain = scratch.write("plain.lathe", program("plain"));
  for (const std::string command : {"dump",
                                    "dump --short",
                                    "dump --dot",
                                    "dump --html",
                                    "dump --after fuse --cpu x86-64-v3",
                                    "dump --after kernels --cpu x86-64-v3",
                                    "dump --after llvm --cpu x86-64-v3",
                                    "dump --after asm --cpu x86-64-v3",
                                    "explain",
                                    "explain --fusion",
                                    "explain --fusion --target=cuda",
                                    "explain --chunks",
                                    "explain --dim n=3 --memory-budget 1GiB",
                                    "opt",
                                    "grad --of nowhere=dy",
                                    "grad --wrt nowhere",
                                    "run --random --dim n=3",
                                    "run --random --dim m=3",
                                    "run",
                                    "verify --dim n=3",
                                    "verify --dim n=33 --tolerance 1e-12",
                                    "bench --repeat 1 --dim n=3",
                                    "trace --steps 1 --dim n=3 -o trace.json",
                                    "compile --emit cuda"}) {
    INFO(command);
    const auto from_plain = run_lathe(scratch, command + " " + plain);
    const auto from_odd = run_lathe(scratch, command + " " + odd);
    CHECK(from_odd.status == from_plain.status);
    CHECK(lines(from_odd.out) == lines(from_plain.out));
    CHECK(lines(from_odd.err) == lines(from_plain.err));
    for (const std::string& text : {from_odd.out, from_odd.err}) CHECK(visible_lines(text) == text);
  }
  const std::string trace = scratch.read("trace.json");
  CHECK(visible_lines(trace) == trace);
}
