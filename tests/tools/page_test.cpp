#include <cstdlib>

#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// The page of `lathe dump --html`: runs its JavaScript in node, if that is installed.

TEST_CASE("a link to a value of the page selects that value", "[tools][page]") {
  if (std::system("node --version >/dev/null 2>&1") != 0) {
    WARN("SKIP: no node");
    return;
  }
  const lathe::test::Scratch scratch;
  const std::string source = lathe::test::source_path("tools/page/model.js").string();
  // "#%12" is not an escape: decoded, it would be the control character 0x12. A browser escapes a space.
  scratch.write("check.js",
                "const graph = {nodes: [{label: '%1'}, {label: '%12'}, {label: '%a b'}, {label: '%zz'}]};\n"
                "(0, eval)('var graph = ' + JSON.stringify(graph) + ';' +\n"
                "          require('fs').readFileSync('" +
                    source +
                    "', 'utf8') +\n"
                    "          ';globalThis.nodeOfFragment = nodeOfFragment;');\n"
                    "const label = fragment => (nodeOfFragment(graph.nodes, fragment) || {label: 'none'}).label;\n"
                    "console.log(['%12', '%1', '%25a%20b', '%zz', '%E0%A4%A', '%2512', ''].map(label).join(' '));\n");
  const int status = std::system(("cd '" + scratch.path("") + "' && node check.js >out 2>err").c_str());
  INFO(scratch.read("err"));
  CHECK(status == 0);
  CHECK(scratch.read("out") == "%12 %1 %a b %zz none %12 none\n");
}
