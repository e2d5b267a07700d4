#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "ir/support/error.h"
#include "models/text/corpus.h"

using namespace lathe;
using namespace lathe::text;

TEST_CASE("UTF-8 round-trips through code points, and invalid bytes become U+FFFD") {
  const std::string good = "aé€😀\n";
  CHECK(decode_utf8(good) == U"aé€😀\n");
  CHECK(encode_utf8(decode_utf8(good)) == good);
  CHECK(decode_utf8("a\xff"
                    "b") ==
        U"a\xfffd"
        U"b");
  CHECK(decode_utf8("\xe2\x82") == U"\xfffd\xfffd");
  CHECK(decode_utf8("\xc0\x80") == U"\xfffd\xfffd");
  CHECK(decode_utf8("\xed\xa0\x80").front() == 0xfffd);
}

TEST_CASE("a vocabulary sorts its characters and reserves id 0 for unknown ones") {
  const auto vocabulary = Vocabulary::of("hello");
  CHECK(vocabulary.size() == 5);
  CHECK(vocabulary.encode("hello") == std::vector<std::int64_t>{2, 1, 3, 3, 4});
  CHECK(vocabulary.encode("hex") == std::vector<std::int64_t>{2, 1, 0});
  CHECK(vocabulary.decode({2, 1, 3, 3, 4}) == "hello");
  CHECK(vocabulary.decode({0, 99, -1}) == "\ufffd\ufffd\ufffd");
  CHECK(Vocabulary::from_characters(vocabulary.characters()).encode("ole") == vocabulary.encode("ole"));
  CHECK(Vocabulary::of("aaabbc", 2).characters() == "ab");
}

TEST_CASE("a corpus reserves its last tenth for validation") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>('a' + i % 26);
  const Corpus corpus = make_corpus(text, 4);
  CHECK(corpus.train.size() == 90);
  CHECK(corpus.validation.size() == 10);
  CHECK(corpus.vocabulary.decode(corpus.train) + corpus.vocabulary.decode(corpus.validation) == text);
  CHECK_THROWS_WITH(make_corpus(text, 10), Catch::Contains("[text_short]"));
  CHECK_THROWS_WITH(make_corpus("", 1), Catch::Contains("[text_short]"));
}

TEST_CASE("a random batch depends on seed and step only, and batches cover the text") {
  std::vector<std::int64_t> ids(50);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  const BatchSampler sampler(ids, 3, 4, 7), same(ids, 3, 4, 7), other(ids, 3, 4, 8);
  CHECK(sampler.random(5).same_bits(same.random(5)));
  CHECK_FALSE(sampler.random(5).same_bits(sampler.random(6)));
  CHECK_FALSE(sampler.random(5).same_bits(other.random(5)));
  bool first = false, last = false;
  for (std::int64_t step = 0; step < 200; ++step) {
    const HostTensor batch = sampler.random(step);
    REQUIRE(batch.shape() == std::vector<std::int64_t>{3, 5});
    for (std::int64_t row = 0; row < 3; ++row) {
      first = first || batch.get_int(row * 5) == 0;
      last = last || batch.get_int(row * 5 + 4) == 49;
      for (std::int64_t i = 1; i < 5; ++i) CHECK(batch.get_int(row * 5 + i) == batch.get_int(row * 5) + i);
    }
  }
  CHECK(first);
  CHECK(last);
}

TEST_CASE("sequential batches visit all windows once") {
  std::vector<std::int64_t> ids(13);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  const BatchSampler sampler(ids, 2, 4, 0);
  CHECK(sampler.windows() == 3);
  CHECK(sampler.sequential(0).get_int(5) == 4);
  CHECK(sampler.sequential(1).get_int(0) == 8);
  CHECK(sampler.sequential(1).get_int(5) == 0);
  CHECK_THROWS_AS(BatchSampler(ids, 1, 13, 0), UserError);
  CHECK_THROWS_AS(BatchSampler(ids, 0, 4, 0), UserError);
}

TEST_CASE("refilling a batch in place gives the same batch") {
  std::vector<std::int64_t> ids(50);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * i % 23);
  const BatchSampler sampler(ids, 3, 4, 7);
  HostTensor rows;
  sampler.random(5, rows);
  const std::byte* const place = rows.data();
  CHECK(rows.same_bits(sampler.random(5)));
  sampler.random(6, rows);
  CHECK(rows.same_bits(sampler.random(6)));
  sampler.sequential(2, rows);
  CHECK(rows.same_bits(sampler.sequential(2)));
  CHECK(rows.data() == place);
  rows = HostTensor(f64, {3, 5});
  sampler.random(1, rows);
  CHECK(rows.same_bits(sampler.random(1)));
}

TEST_CASE("a folder is read in path order, without hidden folders") {
  const auto folder = std::filesystem::temp_directory_path() / "lathe_text_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "sub");
  std::filesystem::create_directories(folder / ".hidden");
  std::ofstream(folder / "b.cpp") << "two";
  std::ofstream(folder / "sub" / "c.h") << "three";
  std::ofstream(folder / "a.cpp") << "one";
  std::ofstream(folder / "d.png") << "no";
  std::ofstream(folder / ".hidden" / "e.cpp") << "no";
  CHECK(read_folder(folder, {".cpp", ".h"}) == "// a.cpp\none\n// b.cpp\ntwo\n// sub/c.h\nthree\n");
  CHECK(read_text(folder / "a.cpp") == "one");
  CHECK_THROWS_WITH(read_text(folder / "nothing"), Catch::Contains("[file_read]"));
  CHECK_THROWS_WITH(read_text(folder), Catch::Contains("[file_read]"));
  CHECK_THROWS_WITH(read_folder(folder / "nothing", {".cpp"}), Catch::Contains("[file_read]"));
  std::filesystem::remove_all(folder);
}
