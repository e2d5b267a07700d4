#include "bench/gemm/gemm_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe::bench {

namespace {

constexpr LaneAxis k = LaneAxis::k, row = LaneAxis::row;

/// y = x W', dX = dY W and dW = dY' X of a layer with weights [n, depth].
void add_layer(GemmGroup& group, const std::string& name, std::int64_t tokens, std::int64_t n, std::int64_t depth) {
  group.cases.push_back({fmt::format("{} y", name), 1, tokens, n, depth, k, k});
  group.cases.push_back({fmt::format("{} dX", name), 1, tokens, depth, n, k, row});
  group.cases.push_back({fmt::format("{} dW", name), 1, n, depth, tokens, row, row});
}

GemmGroup large() {
  GemmGroup group{"large", 0.88, {}};
  for (const std::int64_t n : {1024, 2048, 3072, 4096}) {
    group.cases.push_back({fmt::format("square {} W[n,k]", n), 1, n, n, n, k, k});
    group.cases.push_back({fmt::format("square {} W[k,n]", n), 1, n, n, n, k, row});
  }
  return group;
}

GemmGroup gpt2(std::int64_t tokens) {
  GemmGroup group{fmt::format("GPT-2 M={}", tokens), 0.80, {}};
  add_layer(group, "qkv", tokens, 2304, 768);
  add_layer(group, "proj", tokens, 768, 768);
  add_layer(group, "fc", tokens, 3072, 768);
  add_layer(group, "fc-proj", tokens, 768, 3072);
  return group;
}

GemmGroup lm_head() {
  GemmGroup group{"lm_head", 0.80, {}};
  add_layer(group, "lm_head", 256, 50257, 768);
  group.cases.push_back({"lm_head y", 1, 1024, 50257, 768, k, k});
  return group;
}

/// The layers of a GPT with d = 384 and a vocabulary of 65 characters.
GemmGroup narrow() {
  GemmGroup group{"d=384", 0, {}};
  add_layer(group, "qkv", 1024, 1152, 384);
  add_layer(group, "proj", 1024, 384, 384);
  add_layer(group, "fc-proj", 1024, 384, 1536);
  add_layer(group, "head", 1024, 65, 384);
  return group;
}

GemmGroup skinny() {
  GemmGroup group{"skinny", 0, {}};
  const std::int64_t sizes[][2] = {{768, 768}, {3072, 768}, {768, 3072}, {65, 384}, {1000, 333}};
  for (const std::int64_t m : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32})
    for (const auto& [n, depth] : sizes) {
      group.cases.push_back({fmt::format("M={} W[n,k]", m), 1, m, n, depth, k, k});
      group.cases.push_back({fmt::format("M={} W[k,n]", m), 1, m, n, depth, k, row});
    }
  return group;
}

GemmGroup small() {
  GemmGroup group{"small", 0, {}};
  for (const std::int64_t n : {16, 32, 48, 64, 96, 100, 128, 192, 256})
    for (const LaneAxis axis : {k, row})
      group.cases.push_back({fmt::format("cube {} {}", n, axis == k ? "W[n,k]" : "W[k,n]"), 1, n, n, n, k, axis});
  return group;
}

GemmGroup heads() {
  GemmGroup group{"heads", 0, {}};
  const std::int64_t sizes[][3] = {{48, 64, 64},   {48, 256, 64}, {12, 1024, 64},
                                   {48, 256, 128}, {4, 256, 64},  {16, 100, 80}};
  for (const auto& [batch, s, d] : sizes) {
    group.cases.push_back({"q k'", batch, s, s, d, k, k});
    group.cases.push_back({"p v", batch, s, d, s, k, row});
    group.cases.push_back({"p' dy", batch, s, d, s, row, row});
  }
  group.cases.push_back({"q k', one token", 48, 1, 1024, 64, k, k});
  group.cases.push_back({"p v, one token", 48, 1, 64, 1024, k, row});
  group.cases.push_back({"squares", 48, 128, 128, 128, k, row});
  group.cases.push_back({"squares", 384, 32, 32, 32, k, row});
  return group;
}

/// One row, and weights read from memory: enough copies of them to exceed all caches.
GemmGroup decode() {
  GemmGroup group{"decode, streamed", 0.80, {}};
  const std::int64_t sizes[][2] = {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50257, 768}};
  for (const auto& [n, depth] : sizes)
    for (const LaneAxis axis : {k, row}) {
      GemmCase c{fmt::format("M=1 {}", axis == k ? "W[n,k]" : "W[k,n]"), 1, 1, n, depth, k, axis};
      c.copies = static_cast<int>(std::max<std::int64_t>(2, 400'000'000 / (4 * n * depth)));
      group.cases.push_back(c);
    }
  return group;
}

}  // namespace

std::vector<GemmGroup> gemm_table() {
  return {large(), gpt2(256), gpt2(1024), lm_head(), narrow(), skinny(), small(), heads(), decode()};
}

GemmCase own_gemm_case(const std::string& text) {
  GemmCase c{.name = "own", .batch = 1, .m = 1, .n = 1, .k = 1, .lhs = LaneAxis::k, .rhs = LaneAxis::k};
  std::vector<std::int64_t> sizes;
  for (std::size_t at = 0; at < text.size() && text[at] != ' ';) {
    std::size_t used = 0;
    sizes.push_back(std::stoll(text.substr(at), &used));
    at += used + (at + used < text.size() && text[at + used] == 'x' ? 1 : 0);
  }
  if (sizes.size() == 4) c.batch = sizes[0];
  if (sizes.size() >= 3) c.m = sizes[sizes.size() - 3], c.n = sizes[sizes.size() - 2], c.k = sizes[sizes.size() - 1];
  if (text.find(" r ") != std::string::npos) c.lhs = LaneAxis::row;
  if (text.back() == 'r') c.rhs = LaneAxis::row;
  return c;
}

}  // namespace lathe::bench
