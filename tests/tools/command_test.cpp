#include <map>
#include <regex>
#include <sstream>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/graphs/same_graph.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::Cache;
using test::run_lathe;
using test::Scratch;

namespace {

ir::Graph parsed(const std::string& text) { return ir::parse_graph(text, "small.lathe"); }

/// Checks for a single error message and the exit status of a user error.
void check_refused(const test::Ran& ran, const std::string& what) {
  CAPTURE(ran.err, ran.out);
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, StartsWith("lathe: ") && Contains(what) && !Contains("internal error"));
}

}  // namespace

TEST_CASE("every command has help", "[tools]") {
  const Scratch scratch;
  for (const char* command : {"dump", "explain", "opt", "grad", "run", "verify", "model", "export", "train",
                              "generate", "bench", "trace", "doctor"}) {
    const auto ran = run_lathe(scratch, std::string(command) + " --help");
    CAPTURE(command, ran.err);
    CHECK(ran.status == 0);
    CHECK(ran.out.size() > 100);
    CHECK_THAT(run_lathe(scratch, "--help").out, Contains(command));
  }
  CHECK_THAT(run_lathe(scratch, "--version").out, StartsWith("lathe "));
  CHECK(run_lathe(scratch, "").status == 2);
  CHECK(run_lathe(scratch, "nonsense").status == 2);
  CHECK(run_lathe(scratch, "dump").status == 2);
  CHECK(run_lathe(scratch, "opt").status == 2);
  CHECK_THAT(run_lathe(scratch, "dump file --aftr fuse").err, Contains("--aftr: did you mean '--after'?"));
  CHECK_THAT(run_lathe(scratch, "generate x --tokens=8").err, Contains("did you mean --max-new-tokens"));
}

TEST_CASE("help states the default of every option", "[tools]") {
  const Scratch scratch;
  const std::string all = run_lathe(scratch, "--help").out;
  const std::regex command(R"(\n  ([a-z]+)  )"), option(R"(^ +(?:-\w,)?--([a-z-]+).*)"),
      has_value(R"((TEXT|INT|UINT|FLOAT))"), has_default(R"((=\S|REQUIRED|default: ))");
  int options = 0;
  for (std::sregex_iterator at(all.begin(), all.end(), command), end; at != end; ++at) {
    std::istringstream help(run_lathe(scratch, (*at)[1].str() + " --help").out);
    std::string now;  // the lines of one option
    const auto check = [&] {
      if (!std::regex_search(now, has_value)) return;
      INFO((*at)[1].str() << ":" << now);
      CHECK(std::regex_search(now, has_default));
      ++options;
    };
    for (std::string line; std::getline(help, line);) {
      if (std::regex_match(line, option) || line.empty()) {
        check();
        now = line.empty() ? "" : line + "\n";
      } else if (!now.empty()) {
        now += line + "\n";
      }
    }
  }
  CHECK(options > 100);
}

TEST_CASE("unexpected arguments are listed in order", "[tools]") {
  const Scratch scratch;
  const auto ran = run_lathe(scratch, "grad small.lathe --target x86-64-v2");
  CHECK(ran.status == 2);
  CHECK_THAT(ran.err, StartsWith("These arguments were not expected: --target x86-64-v2\n"));
}

TEST_CASE("dump prints text that parses back", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  const ir::Graph graph = parsed(test::small_program);
  const auto ran = run_lathe(scratch, "dump " + file);
  REQUIRE(ran.status == 0);
  test::check_same_graph(parsed(ran.out), graph);
  CHECK_THAT(ran.out, Contains("loc(\"small.cpp\":7 in \"layer.0\")"));
  CHECK_THAT(run_lathe(scratch, "dump --short " + file).out, !Contains("loc(") && Contains("softmax"));
  CHECK_THAT(run_lathe(scratch, "dump --strides " + file).out, Contains("strided(1, 4)"));
  CHECK(run_lathe(scratch, "dump - < " + file).status == 0);
  REQUIRE(run_lathe(scratch, "dump " + file + " -o " + scratch.path("copy.lathe")).status == 0);
  CHECK(scratch.read("copy.lathe") == ran.out);
}

TEST_CASE("dump shows each stage down to machine code", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  const auto after = [&](const std::string& stage) {
    const auto ran = run_lathe(scratch, "dump --cpu x86-64-v3 --after " + stage + " " + file);
    INFO(ran.err);
    CHECK(ran.status == 0);
    return ran.out;
  };
  CHECK_THAT(after("expand"), StartsWith("graph @small(") && Contains("exp ") && !Contains("softmax"));
  CHECK_THAT(after("kernels"), Contains("kernel @") && Contains("for ") && Contains("small.cpp:8"));
  CHECK_THAT(after("llvm"), Contains("define "));
  CHECK_THAT(after("asm"), Contains("ret"));
  CHECK_THAT(after("all"), Contains("// after input") && Contains("// after expand") && Contains("// after asm"));
  check_refused(run_lathe(scratch, "dump --after nonsense " + file), "nonsense");
}

TEST_CASE("every stage that opt lists can be dumped", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  const std::map<std::string, std::string> asked_by{{"dtype", "--dtype f64 "},
                                                    {"mixed-bf16", "--precision bf16 "},
                                                    {"mixed-f16", "--precision f16 "},
                                                    {"known-sizes", "--chunk-rows 8 "},
                                                    {"evaluation", "--evaluation "},
                                                    {"shard", "--mesh data=2 "},
                                                    {"ring", "--mesh data=2 --ring always "},
                                                    {"require-attention", "--require-fused "},
                                                    {"checkpoint-loops", "--memory-budget 1GiB "},
                                                    {"rematerialize", "--memory-budget 1GiB "}};
  for (const std::string target : {"host", "x86-64-v3", "cuda:sm_80", "cuda:sm_90a"}) {
    std::istringstream list(run_lathe(scratch, "opt --list --target " + target).out);
    int stages = 0;
    for (std::string line; std::getline(list, line);) {
      if (!line.starts_with("  ")) continue;
      const std::string stage = line.substr(2, line.find(' ', 2) - 2);
      const auto option = asked_by.find(stage);
      const std::string asked = option == asked_by.end() ? "" : option->second;
      const auto ran =
          run_lathe(scratch, "dump --dim n=3 --target " + target + " " + asked + "--after " + stage + " " + file);
      CAPTURE(target, stage, ran.err);
      CHECK(ran.status == 0);
      CHECK(ran.out.size() > 20);
      ++stages;
      if (asked.empty()) continue;
      CHECK_THAT(line, Contains("(--"));
      check_refused(run_lathe(scratch, "dump --after " + stage + " --target " + target + " " + file),
                    "the stage " + stage + " is not enabled  [usage]");
    }
    CHECK(stages > 20);
  }
  CHECK_THAT(run_lathe(scratch, "dump --after fuse " + file).out, StartsWith("region 0 ") && Contains("stored"));
  CHECK_THAT(run_lathe(scratch, "dump --after memory-plan --dim n=3 " + file).out, StartsWith("arena of "));
  check_refused(run_lathe(scratch, "dump --after memory-plan " + file), "n has none  [dim_option]");
  check_refused(run_lathe(scratch, "dump --after fuze " + file), "did you mean 'fuse'?");
  check_refused(run_lathe(scratch, "dump --after kernels --html " + file), "[usage]");
  check_refused(run_lathe(scratch, "dump --after shard " + file), "give --mesh");
  check_refused(run_lathe(scratch, "dump --after evaluation " + file), "give --evaluation");
  check_refused(run_lathe(scratch, "dump --after llvm --target cuda " + file), "give --target host");
  check_refused(run_lathe(scratch, "dump --after pad-products " + file), "give --target cuda");
}

TEST_CASE("dump writes a self-contained page, and Graphviz text", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  const std::string page = run_lathe(scratch, "dump --html " + file).out;
  CHECK_THAT(page, StartsWith("<!DOCTYPE html>") && Contains("f32[n, d=4]") && Contains("small.cpp:7"));
  for (const char* outside : {"src=", "href=", "@import", "url(http", "fetch(", "{{"})
    CHECK_THAT(page, !Contains(outside));
  CHECK_THAT(run_lathe(scratch, "dump --dot " + file).out,
             StartsWith("digraph \"small\"") && Contains("softmax") && Contains("cluster_") && Contains("f32[n, n]"));
  SECTION("names from the text cannot end the script") {
    const std::string odd = scratch.write("odd.lathe",
                                          "graph @\"</script><b>&\"(input %\"</script>{{script}}\": f32[n]) { output "
                                          "\"<!--\" %\"</script>{{script}}\" }");
    const std::string odd_page = run_lathe(scratch, "dump --html " + odd).out;
    CHECK_THAT(odd_page, Contains("<title>&lt;/script>&lt;b>&amp;</title>") && Contains("\\u003c/script>{{script}}"));
    const auto first = odd_page.find("</script>");
    CHECK(odd_page.find("</script>", first + 1) == std::string::npos);
  }
}

TEST_CASE("explain prints shapes and reasons", "[tools]") {
  const Scratch scratch;
  const auto ran = run_lathe(scratch, "explain " + scratch.write("small.lathe", test::small_program));
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, Contains("swaps n and d=4; no copy"));
  CHECK_THAT(ran.out, Contains("sums over d=4; n from the left, n from the right"));
  CHECK_THAT(ran.out, Contains("small.cpp:7 in layer.0"));
}

TEST_CASE("fused attention can be required, and rejected", "[tools]") {
  const Scratch scratch;
  const auto attention = [&](const std::string& name, int depth) {
    return scratch.write(name, "graph @a(input %q: f32[S=8, d=" + std::to_string(depth) + R"(]) {
  %scores = contract %q, %q {spec="ab,cb->ac"}  loc("wide.cpp":7)
  %w = softmax %scores {dim=1}                  loc("wide.cpp":8)
  %y = contract %w, %q {spec="ab,bc->ac"}       loc("wide.cpp":9)
  output "y" %y
})");
  };
  const std::string fine = attention("fine.lathe", 16), wide = attention("wide.lathe", 600);
  for (const std::string command :
       {"run --random ", "bench --repeat 1 ", "trace --steps 1 ", "explain --fusion ", "compile --emit=cuda "}) {
    INFO(command);
    CHECK(run_lathe(scratch, command + "--require-fused " + fine).status == 0);
    const auto refused = run_lathe(scratch, command + "--require-fused " + wide);
    check_refused(refused, "[attention_unfused]");
    CHECK_THAT(refused.err, Contains("wide.cpp:8") && Contains("contract at wide.cpp:7") && Contains("600 elements"));
  }
  CHECK(run_lathe(scratch, "run --random --no-fused-attention " + wide).status == 0);
  CHECK(run_lathe(scratch, "run --random --no-fused-attention --require-fused " + fine).status == 2);
  CHECK(run_lathe(scratch, "explain --require-fused " + fine).status == 2);
  CHECK_THAT(run_lathe(scratch, "compile --emit=cuda " + fine).out, Contains("_attention_"));
  CHECK_THAT(run_lathe(scratch, "compile --emit=cuda --no-fused-attention " + fine).out, !Contains("_attention_"));
  CHECK_THAT(run_lathe(scratch, "trace --steps 1 --require-fused " + fine).out, Contains("attention"));
  CHECK_THAT(run_lathe(scratch, "trace --steps 1 --no-fused-attention " + fine).out, !Contains("attention"));
  // With vectors of 512 bits, so few rows are faster unfused, unless fusion is required.
  CHECK_THAT(run_lathe(scratch, "explain --target x86-64-v4 --fusion " + fine).out,
             Contains("not fused") && Contains("plain is faster"));
  CHECK_THAT(run_lathe(scratch, "explain --target x86-64-v4 --fusion --require-fused " + fine).out,
             !Contains("not fused"));
}

TEST_CASE("explain --fusion prints GPU attention kernels without a GPU", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("fine.lathe", R"(graph @a(input %q: f32[S=8, d=16]) {
  %scores = contract %q, %q {spec="ab,cb->ac"}  loc("wide.cpp":7)
  %w = softmax %scores {dim=1}                  loc("wide.cpp":8)
  %y = contract %w, %q {spec="ab,bc->ac"}       loc("wide.cpp":9)
  output "y" %y
})");
  for (const std::string target : {"cuda", "cuda:sm_80", "cuda:sm_90a"}) {
    INFO(target);
    CHECK_THAT(run_lathe(scratch, "explain --fusion --target=" + target + " " + file).out,
               Contains("softmax at wide.cpp:8: fused") && Contains("not by tensor cores") && Contains("wide.cpp:7"));
    CHECK_THAT(run_lathe(scratch, "explain --fusion --precision bf16 --target=" + target + " " + file).out,
               Contains(": tensor cores, "));
  }
  check_refused(run_lathe(scratch, "explain --fusion --target=gpu " + file), "[unknown_target]");
  check_refused(run_lathe(scratch, "explain --fusion --target=cuda:sm_1 " + file), "[unknown_arch]");
  CHECK(run_lathe(scratch, "explain --target=cuda " + file).status == 1);
}

TEST_CASE("a memory budget: the same results in less memory, or the minimum that can be reached", "[tools]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch, "model gpt --layers 3 --d-model 32 --heads 2 --step -o step.lathe").status == 0);
  const std::string sizes = "step.lathe --threads 2 --dim B=2,T=24";
  const auto refused = run_lathe(scratch, "explain --memory-budget 1KiB " + sizes);
  check_refused(refused, "[memory_budget]");
  const auto at = refused.err.find(" bytes are the least");
  REQUIRE(at != std::string::npos);
  const auto start = refused.err.find_last_not_of("0123456789", at - 1) + 1;
  const std::string least = refused.err.substr(start, at - start);
  const auto told = run_lathe(scratch, "explain --memory-budget " + least + " " + sizes);
  INFO(told.out << told.err);
  CHECK(told.status == 0);
  CHECK_THAT(told.out, Contains("within a budget of ") && Contains("recomputed for late uses") &&
                           Contains("gpt.cpp:") && Contains("more memory traffic"));
  CHECK(run_lathe(scratch, "run --random -o free.safetensors " + sizes).status == 0);
  CHECK(run_lathe(scratch, "run --random -o least.safetensors --memory-budget " + least + " " + sizes).status == 0);
  CHECK(scratch.read("free.safetensors") == scratch.read("least.safetensors"));
  for (const char* size : {"much", "-1GiB", "1.5XB", "1e400", "nan", "99999999TiB"})
    check_refused(run_lathe(scratch, std::string("explain step.lathe --memory-budget=") + size), "[size_text]");
  check_refused(run_lathe(scratch, "explain step.lathe --memory-budget 1.5GiB --dim B=2"), "[memory_dims]");
}

TEST_CASE("large matmuls are split into row chunks if sizes are known, otherwise the reason is reported", "[tools]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch, "model gpt --layers 1 --d-model 32 --heads 2 --step -o step.lathe").status == 0);
  CHECK_THAT(run_lathe(scratch, "explain step.lathe --chunks").out,
             Contains("stays whole") && Contains("not all sizes of f32[B, T, vocab=256] are known"));
  CHECK_THAT(run_lathe(scratch, "explain step.lathe --chunks --dim B=2,T=8").out,
             Contains("16 rows are fewer than two chunks of 1024"));
  CHECK_THAT(run_lathe(scratch, "explain step.lathe --chunks --dim B=2,T=8 --chunk-rows 8").out,
             Contains("in 2 chunks of 8 rows, along B=2") && Contains("added up: %"));
  const auto logits = [&](const std::string& rows) {
    const std::string text = run_lathe(scratch, "opt step.lathe --dim B=2,T=8 --chunk-rows " + rows).out;
    return text.find("f32[1, T=8, vocab=256]") != std::string::npos;
  };
  CHECK(logits("8"));
  CHECK_FALSE(logits("auto"));
  CHECK_FALSE(logits("off"));
  const std::string run = "run step.lathe --random --dim B=2,T=8 --chunk-rows ";
  CHECK(run_lathe(scratch, run + "8 -o rows.safetensors").status == 0);
  for (const char* rows : {"many", "0", "-3", "1.5", "99999999999999999999"})
    check_refused(run_lathe(scratch, std::string("opt step.lathe --chunk-rows=") + rows), "[chunk_rows]");
}

TEST_CASE("tune stores its choice and does not change results", "[tools]") {
  const Scratch scratch(Cache::own);
  REQUIRE(run_lathe(scratch, "model gpt --layers 1 --d-model 32 --heads 2 -o gpt.lathe").status == 0);
  const std::string sizes = "gpt.lathe --threads 2 --dim B=2,T=9";
  CHECK(run_lathe(scratch, "run --random -o free.safetensors " + sizes).status == 0);
  const auto tuned = run_lathe(scratch, "run --random --tune -o tuned.safetensors " + sizes);
  INFO(tuned.err);
  CHECK(tuned.status == 0);
  CHECK_THAT(tuned.err, Contains(": 0 from the cache"));
  CHECK(scratch.read("free.safetensors") == scratch.read("tuned.safetensors"));
  CHECK_THAT(run_lathe(scratch, "bench --repeat 1 --tune=5 " + sizes).err, Contains(", 0 measured"));
  CHECK(run_lathe(scratch, "run --random --tune=-1 " + sizes).status == 2);
  CHECK(run_lathe(scratch, "run --random --tune --interpret " + sizes).status == 2);
}

TEST_CASE("opt runs passes", "[tools]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("dead.lathe", "graph @g(input %x: f32[n]) {\n%1 = exp %x\n%2 = neg %x\noutput \"y\" %2\n}\n");
  const auto dce = run_lathe(scratch, "opt --passes dce --times " + file);
  REQUIRE(dce.status == 0);
  CHECK_THAT(dce.out, !Contains("exp") && Contains("neg"));
  CHECK_THAT(dce.err, Contains("dce"));
  CHECK(ir::find_defect(parsed(run_lathe(scratch, "opt " + file).out)).value_or("sound") == "sound");
  CHECK_THAT(run_lathe(scratch, "opt --list").out, Contains("canonicalize") && Contains("expand"));
  check_refused(run_lathe(scratch, "opt --passes nonsense " + file), "[pass_name]");
  check_refused(run_lathe(scratch, "opt --stop-after kernels " + file), "lathe dump --after kernels");
}

TEST_CASE("opt stops after any listed pass, or reports the option that enables it", "[tools]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("exp.lathe", "graph @g(input %x: f32[B, 8]) {\n%1 = exp %x\noutput \"y\" %1\n}\n");
  const auto stop = [&](const std::string& stage) {
    return run_lathe(scratch, "opt --times --stop-after " + stage + " " + file);
  };
  check_refused(stop("own-results"), "give --target host");
  check_refused(stop("require-attention"), "give --target host and --require-fused");
  check_refused(stop("pad-products"), "give --target cuda");
  check_refused(stop("evaluation"), "give --evaluation");
  check_refused(stop("shard"), "give --mesh");
  check_refused(stop("ring"), "give --mesh, --split and --ring always");
  check_refused(stop("known-sizes"), "give --dim");
  check_refused(stop("evaluate"), "did you mean 'evaluation'?");
  check_refused(stop("cse --passes dce"), "is not in --passes dce");
  check_refused(run_lathe(scratch, "opt --disable own-results " + file), "give --target host");
  for (const std::string asked :
       {"own-results --target host", "require-attention --target host --require-fused", "pad-products --target cuda",
        "evaluation --evaluation", "shard --mesh data=2 --split B:data",
        "ring --mesh data=2 --split B:data --ring always", "known-sizes --dim B=4", "mixed-bf16 --precision bf16",
        "dtype --dtype f64"}) {
    const auto ran = stop(asked);
    INFO(asked << "\n" << ran.err);
    CHECK(ran.status == 0);
    const auto last = ran.err.find_last_of('\n', ran.err.size() - 2) + 1;
    CHECK_THAT(ran.err.substr(last), StartsWith(asked.substr(0, asked.find(' ')) + " "));
  }
}

TEST_CASE("dump shows what run compiles, with the same options", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("wide.lathe", R"(graph @a(input %q: f32[S, d=64]) {
  %scores = contract %q, %q {spec="ab,cb->ac"}
  %w = softmax %scores {dim=1}
  %y = contract %w, %q {spec="ab,bc->ac"}
  output "y" %y
})");
  const auto after = [&](const std::string& stage, const std::string& options) {
    CHECK(run_lathe(scratch, "run --random --dim S=8 " + options + " " + file).status == 0);
    const auto ran =
        run_lathe(scratch, "dump --dim S=8 --target x86-64-v3 --times --after " + stage + " " + options + " " + file);
    INFO(stage << " " << options << "\n" << ran.err);
    CHECK(ran.status == 0);
    return ran;
  };
  CHECK_THAT(after("cse", "--dtype f64").out, Contains("f64[S, d=64]") && !Contains("f32"));
  CHECK_THAT(after("cse", "--precision bf16").out, Contains("bf16[S, d=64]") && Contains("%q: f32[S, d=64]"));
  CHECK_THAT(after("cse", "--chunk-rows 2").out, Contains("f32[S=8, d=64]"));
  CHECK_THAT(after("fuse", "--require-fused").out, Contains(" attention over "));
  const auto plain = after("fuse", "--no-fused-attention");
  CHECK_THAT(plain.out, Contains(" product over ") && !Contains(" attention over "));
  // Regions are known before kernels exist.
  CHECK_THAT(plain.err, Contains("fuse ") && !Contains("kernels "));
  CHECK_THAT(after("fuse", "--memory-budget 1GiB").err, Contains("rematerialize ") && Contains("fuse "));
  CHECK_THAT(after("memory-plan", "").err, Contains("memory-plan ") && Contains("an arena of "));
  CHECK_THAT(after("llvm", "").err, Contains("collectives ") && Contains("llvm ") && Contains("code of "));
  CHECK_THAT(after("asm", "").err, Contains("asm "));
}

TEST_CASE("a memory budget is listed, shown and accepted for CPUs only", "[tools]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("exp.lathe", "graph @g(input %x: f32[4, 8]) {\n%1 = exp %x\noutput \"y\" %1\n}\n");
  CHECK_THAT(run_lathe(scratch, "opt --list --target host").out, Contains("rematerialize"));
  CHECK_THAT(run_lathe(scratch, "opt --list --target cuda").out, !Contains("rematerialize"));
  for (const std::string stage : {"cse", "checkpoint-loops", "rematerialize", "cuda"})
    check_refused(run_lathe(scratch, "dump --target cuda --memory-budget 1GiB --after " + stage + " " + file),
                  "[memory_target]");
}

TEST_CASE("dump runs the stages that options request, and times them", "[tools]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("drop.lathe",
                    "graph @g(input %x: f32[B, 8], state %rng: i64[2]) {\n%1 = dropout %x, %rng {p=0.5, stream=0}\n"
                    "%2 = sum %1 {dims=[0, 1], keepdim=false}\noutput \"y\" %2\n}\n");
  CHECK_THAT(run_lathe(scratch, "dump --after dce " + file).out, Contains("dropout"));
  CHECK_THAT(run_lathe(scratch, "dump --evaluation --after dce " + file).out, !Contains("dropout"));
  const auto divided = run_lathe(scratch, "dump --mesh data=2 --split B:data --after shard " + file);
  INFO(divided.err);
  CHECK_THAT(divided.out, Contains("all_reduce") && Contains("B@data"));
  CHECK_THAT(run_lathe(scratch, "dump --mesh data=2 --split B:data --after collectives " + file).out,
             Contains("\ncollective 0: all_reduce along data=2, after the launches\n") && Contains("drop.lathe\":3"));
  CHECK_THAT(run_lathe(scratch, "dump --after collectives " + file).out, Contains("// no collectives"));
  const auto timed = run_lathe(
      scratch, "dump --times --evaluation --mesh data=2 --split B:data --dim B=4 --after memory-plan " + file);
  CHECK_THAT(timed.out, StartsWith("arena of "));
  const std::string& times = timed.err;
  const auto at = [&](const char* stage) { return times.find(stage); };
  INFO(times);
  CHECK(
      (at("evaluation ") < at("shard ") && at("shard ") < at("canonicalize ") && at("canonicalize ") < at("fuse ")));
  CHECK_THAT(times, Contains(" regions\n") && Contains(" launches of "));
}

TEST_CASE("grad adds the gradients as outputs", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  const auto ran = run_lathe(scratch, "grad --of weights=dy --wrt w,x --only " + file);
  REQUIRE(ran.status == 0);
  const ir::Graph graph = parsed(ran.out);
  REQUIRE(graph.outputs.size() == 2);
  CHECK(graph.outputs[0].name == "grad.w");
  CHECK(graph[graph.outputs[0].value].type.to_string() == "f32[d=4, d=4]");
  CHECK(graph.find_argument("dy").valid());
  CHECK_THAT(ran.out, Contains("loc(gradient \"small.cpp\":8)"));
  check_refused(run_lathe(scratch, "grad --wrt nonsense " + file), "nonsense");
}

TEST_CASE("run computes outputs and updated states", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  Tensors arguments;
  arguments.emplace("x", HostTensor::from({2, 4}, {1, 0, 0, 0, 0, 2, 0, 0}));
  arguments.emplace("w", HostTensor::from({4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));
  arguments.emplace("runs", HostTensor::from_ints({}, {41}));
  write_safetensors(scratch.path("in.safetensors"), arguments);
  for (const char* how : {"--interpret", "", "--dtype f64", "--dtype bf16", "--threads 3"}) {
    CAPTURE(how);
    const auto ran = run_lathe(scratch, "run " + file + " -i " + scratch.path("in.safetensors") + " " + how + " -o " +
                                            scratch.path("out.safetensors"));
    CAPTURE(ran.err);
    REQUIRE(ran.status == 0);
    const auto out = SafetensorsFile::open(scratch.path("out.safetensors"));
    CHECK(out.tensor("runs").get_int(0) == 42);
    const HostTensor weights = out.tensor("weights");
    // The scores are [[1, 0], [0, 4]].
    CHECK(weights.get(0) == Approx(0.7310585786).epsilon(0.01));
    CHECK(weights.get(3) == Approx(0.9820137900).epsilon(0.01));
  }
  CHECK_THAT(run_lathe(scratch, "run " + file + " --random --dim n=3 --interpret").out,
             Contains("weights f32[3, 3]"));
  check_refused(run_lathe(scratch, "run " + file), "[argument_missing]");
  check_refused(run_lathe(scratch, "run " + file + " --random --dim n"), "[dim_option]");
  check_refused(run_lathe(scratch, "run " + file + " --random --dim m=3"), "no unknown dim of this name");
  write_safetensors(scratch.path("other.safetensors"), Tensors{{"y", HostTensor(f32, {1})}});
  check_refused(run_lathe(scratch, "run " + file + " --random -i " + scratch.path("other.safetensors")),
                "[argument_unknown]");
  check_refused(run_lathe(scratch, "run " + file + " -i " + file), "[safetensors");
}

TEST_CASE("verify compares compiled code with the interpreter and names the first op that differs", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  const auto good = run_lathe(scratch, "verify " + file + " --dim n=33");
  CHECK(good.status == 0);
  CHECK_THAT(good.out, Contains("ok    weights"));
  const auto strict = run_lathe(scratch, "verify " + file + " --dim n=33 --tolerance 1e-12");
  check_refused(strict, "[verify_mismatch]");
  CHECK_THAT(strict.err, Contains("the first op that differs on the same operands is at small.cpp:5") &&
                             Contains("linear %x, %w") && Contains("wrong because of it: weights"));
  CHECK_THAT(strict.out, Contains("WRONG weights"));
}

TEST_CASE("a 16-bit constant has one value in run, --interpret and verify, with finite tolerances", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("constant.lathe", R"(graph @constant(input %x: f32[n]) {
  %c = constant {dtype=f32, shape=[], values=[0.1]}
  %1 = eq %x, %c
  %2 = sub %x, %c
  %3 = ne %x, %x
  %4 = masked_fill %x, %1 {value=0.1}
  %5 = sub %4, %x
  output "equal" %1
  output "difference" %2
  output "rest" %5
}
)");
  const std::string values = scratch.path("x.safetensors");
  write_safetensors(values, Tensors{{"x", HostTensor::from({2}, {0.1, 3}, f32)}});
  for (const std::string dtype : {"f32", "bf16", "f16"}) {
    const std::string options = file + " -i " + values + " --dtype " + dtype;
    const auto compiled = run_lathe(scratch, "run " + options),
               interpreted = run_lathe(scratch, "run --interpret " + options);
    CHECK(compiled.out == interpreted.out);
    CHECK_THAT(compiled.out, Contains("[true, false]"));
    const auto verified = run_lathe(scratch, "verify " + options);
    INFO(verified.out << verified.err);
    CHECK(verified.status == 0);
    CHECK_THAT(verified.out, Contains("ok    equal") && !Contains("inf"));
  }
}

TEST_CASE("lathe run prints and stores 64-bit integers", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("integers.lathe", R"(graph @integers() {
  %1 = constant {dtype=i64, shape=[4], values=[9007199254740993, -9007199254740995, 9223372036854775807, -9223372036854775808]}
  output "i" %1
}
)");
  for (const std::string how : {"", " --interpret"}) {
    const auto ran = run_lathe(scratch, "run " + file + how);
    INFO(ran.out << ran.err);
    CHECK_THAT(ran.out, Contains("[9007199254740993, -9007199254740995, 9223372036854775807, -9223372036854775808]"));
  }
}

TEST_CASE("every model is valid, and its step trains", "[tools]") {
  const Scratch scratch;
  for (const char* name :
       {"gpt", "llama", "encoder-decoder", "walkthrough", "llama-attention", "einsum-attention", "attention-forms"}) {
    CAPTURE(name);
    const auto ran = run_lathe(scratch, std::string("model ") + name);
    REQUIRE(ran.status == 0);
    const ir::Graph graph = parsed(ran.out);
    CHECK(ir::find_defect(graph).value_or("sound") == "sound");
    CHECK(ir::print(graph) == ran.out);
  }
  const std::string step = scratch.path("step.lathe");
  REQUIRE(run_lathe(scratch, "model gpt --layers 1 --d-model 16 --heads 2 --vocab 11 --step -o " + step).status == 0);
  const auto verified = run_lathe(scratch, "verify " + step + " --dim B=2,T=5");
  INFO(verified.out << verified.err);
  CHECK(verified.status == 0);
  CHECK_THAT(verified.out, Contains("ok    loss"));
  check_refused(run_lathe(scratch, "model walkthrough --loss"), "no loss");
}

TEST_CASE("bench measures a graph, doctor the host", "[tools]") {
  const Scratch scratch(Cache::own);
  const auto bench =
      run_lathe(scratch, "bench --repeat 2 --dim n=16 " + scratch.write("small.lathe", test::small_program));
  INFO(bench.err);
  CHECK(bench.status == 0);
  CHECK_THAT(bench.out, Contains("GFLOP/s") && Contains("median") && Contains("small.cpp:"));
  const auto doctor = run_lathe(scratch, "doctor");
  CHECK(doctor.status == 0);
  CHECK_THAT(doctor.out,
             Contains("LLVM") && Contains("NVRTC") && Contains("NCCL") && Contains("driver") && Contains("threads"));
  CHECK_THAT(doctor.out, Contains(scratch.path("cache")) && Contains("schedules for host assume "));
  const auto xeon = run_lathe(scratch, "doctor --target sapphirerapids");
  CHECK(xeon.status == 0);
  CHECK_THAT(xeon.out, Contains("assume sapphirerapids:") && Contains("AMX tiles of bf16") &&
                           Contains("L2           2048 KiB, shared by 2 threads"));
  const auto gpu = run_lathe(scratch, "doctor --target cuda:sm_90a");
  CHECK_THAT(gpu.out, Contains("assume sm_90a:") && Contains("227 KiB on demand") && Contains("wgmma"));
  CHECK(run_lathe(scratch, "doctor --target sapphirerapids --measure").status != 0);
}

TEST_CASE("commands run on a GPU, or report what is missing", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", test::small_program);
  for (const std::string& command :
       {"run --random --dim n=16 " + file, "bench --dim n=16 " + file, "trace --dim n=16 " + file,
        "train --text " + file + " --context 4 --steps 1 -o " + scratch.path("run")}) {
    const auto ran = run_lathe(scratch, command + " --target=cuda");
    INFO(command << "\n" << ran.err);
    if (ran.status == 0) continue;
    CHECK_THAT(ran.err, Contains("[driver_missing]") || Contains("[nvrtc_missing]") || Contains("[no_device]"));
    CHECK_THAT(ran.err, Contains("install") || Contains("GPU"));
  }
  check_refused(run_lathe(scratch, "run --random " + file + " --target=tpu"),
                "give one of host, x86-64-v2, x86-64-v3, x86-64-v4, sapphirerapids, znver4, znver5, cuda, or a GPU "
                "architecture such as cuda:sm_90a");
  check_refused(run_lathe(scratch, "run --random " + file + " --target=cuda:sm_1"), "[unknown_arch]");
  check_refused(run_lathe(scratch, "run --random " + file + " --target=host,-amx9"), "[unknown_cpu]");
  CHECK(run_lathe(scratch, "run --random " + file + " --target=host,-amx-bf16").status == 0);
}

TEST_CASE("invalid files give one clear message", "[tools]") {
  const Scratch scratch;
  check_refused(run_lathe(scratch, "dump " + scratch.path("nowhere.lathe")), "nowhere.lathe");
  check_refused(run_lathe(scratch, "dump " + scratch.path("")), "");
  check_refused(run_lathe(scratch, "explain " + scratch.write("bad.lathe", "graph @g() {\n  %1 = exq\n}\n")),
                "bad.lathe:2:8: there is no op 'exq'");
  check_refused(run_lathe(scratch, "run " + scratch.write("bytes.lathe", std::string("\0\xff\x01graph", 8))),
                "bytes.lathe:1:1");
  check_refused(run_lathe(scratch, "dump " + scratch.write("fine.lathe", "graph @g() {}") + " -o /nowhere/at/all"),
                "");
}
