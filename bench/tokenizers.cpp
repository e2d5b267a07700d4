// Encodes a text with a tokenizer.json on one thread, and prints the seconds of each round: Lathe's worker process
// for bench/tokenizers_peer.py.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "ir/support/error.h"
#include "models/text/tokenizer/tokenizer.h"
#include "runtime/host/seconds.h"

namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string_view> parts_of(std::string_view text, std::size_t size) {
  std::vector<std::string_view> parts;
  while (text.size() > size) {
    std::size_t end = text.find('\n', size);
    end = end == std::string_view::npos ? text.size() : end + 1;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  if (!text.empty()) parts.push_back(text);
  return parts;
}

}  // namespace

/// bench_tokenizers TOKENIZER.json TEXT PART_BYTES: runs a round for each line on stdin and prints "SECONDS TOKENS
/// CHECKSUM".
int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: bench_tokenizers TOKENIZER.json TEXT PART_BYTES\n", stderr);
    return 2;
  }
  try {
    const lathe::Tokenizer tokenizer = lathe::Tokenizer::load(argv[1]);
    std::ifstream in(argv[2], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto parts = parts_of(text, std::stoul(argv[3]));
    for (std::string line; std::getline(std::cin, line);) {
      std::size_t tokens = 0;
      std::uint64_t checksum = 0;
      const auto start = Clock::now();
      for (const std::string_view part : parts) {
        const lathe::Encoding encoding = tokenizer.encode(part, {.special_tokens = false});
        tokens += encoding.ids.size();
        for (const lathe::TokenId id : encoding.ids)
          checksum = (checksum * 31 + static_cast<std::uint64_t>(id)) % 1000000007;
      }
      std::printf("%.6f %zu %llu\n", lathe::seconds_since(start), tokens, static_cast<unsigned long long>(checksum));
      std::fflush(stdout);
    }
  } catch (const lathe::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
