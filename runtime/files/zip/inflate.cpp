#include "runtime/files/zip/inflate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lathe {

namespace {

/// A fault in the compressed bytes. Thrown and caught in this file.
struct Fault {
  std::string_view text;
};

constexpr int most_bits = 15;  // of a code

/// The bits of the compressed bytes, least significant first.
class Bits {
 public:
  explicit Bits(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Returns the next bits without taking them; zeros after the end.
  std::uint32_t peek(int count) {
    while (available_ < count) {
      const std::uint64_t next = at_ < bytes_.size() ? std::to_integer<std::uint64_t>(bytes_[at_]) : 0;
      ++at_;
      buffer_ |= next << available_;
      available_ += 8;
    }
    return static_cast<std::uint32_t>(buffer_ & ((std::uint64_t{1} << count) - 1));
  }

  void drop(int count) {
    buffer_ >>= count;
    available_ -= count;
    if (at_ - static_cast<std::size_t>(available_ / 8) > bytes_.size()) throw Fault{"it ends within a block"};
  }

  std::uint32_t take(int count) {
    const std::uint32_t value = peek(count);
    drop(count);
    return value;
  }

  /// Copies whole bytes, from the next boundary of a byte on.
  void copy(std::span<std::byte> to) {
    drop(available_ % 8);
    at_ -= static_cast<std::size_t>(available_ / 8);
    buffer_ = 0;
    available_ = 0;
    if (to.size() > bytes_.size() - std::min(at_, bytes_.size())) throw Fault{"it ends within a block"};
    std::ranges::copy(bytes_.subspan(at_, to.size()), to.begin());
    at_ += to.size();
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;  ///< of the next byte to buffer, which may be after the end
  std::uint64_t buffer_ = 0;
  int available_ = 0;
};

/// A Huffman code, as a table of all words of its longest length.
class Code {
 public:
  /// `lengths`: bits of each symbol, 0 for one without a code.
  explicit Code(std::span<const std::uint8_t> lengths) {
    std::array<std::uint32_t, most_bits + 1> count{}, next{};
    for (const std::uint8_t length : lengths) ++count[length];
    count[0] = 0;
    std::uint32_t word = 0, used = 0;
    for (int bits = 1; bits <= most_bits; ++bits) {
      word = (word + count[bits - 1]) << 1;
      next[bits] = word;
      used += count[bits] << (most_bits - bits);
      if (count[bits] > 0) bits_ = bits;
    }
    constexpr std::uint32_t all = 1U << most_bits;
    // A single symbol has a code of one bit, of which half is unused.
    const bool is_single = used == all / 2 && count[1] == 1 && bits_ == 1;
    if (used > all || (used < all && used != 0 && !is_single)) throw Fault{"a block has an incomplete code"};
    table_.assign(std::size_t{1} << bits_, {});
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (const int length = lengths[symbol]; length > 0)
        fill(next[length]++, length, static_cast<std::uint16_t>(symbol));
  }

  std::uint32_t symbol(Bits& bits) const {
    const Word& word = table_[bits.peek(bits_)];
    if (word.length == 0) throw Fault{"a code has no symbol"};
    bits.drop(word.length);
    return word.symbol;
  }

 private:
  struct Word {
    std::uint16_t symbol = 0;
    std::uint8_t length = 0;  ///< 0: not used
  };

  /// Codes are stored with their first bit as the least significant one.
  void fill(std::uint32_t code, int length, std::uint16_t symbol) {
    std::uint32_t reversed = 0;
    for (int i = 0; i < length; ++i) reversed |= (code >> i & 1U) << (length - 1 - i);
    for (std::size_t at = reversed; at < table_.size(); at += std::size_t{1} << length)
      table_[at] = {symbol, static_cast<std::uint8_t>(length)};
  }

  int bits_ = 0;
  std::vector<Word> table_;
};

/// The codes of a block: of bytes and lengths, and of distances.
struct Codes {
  Code literals, distances;
};

Codes fixed_codes() {
  std::array<std::uint8_t, 288> literals{};
  for (std::size_t i = 0; i < literals.size(); ++i) literals[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  std::array<std::uint8_t, 32> distances{};
  distances.fill(5);
  return {Code(literals), Code(distances)};
}

/// Reads the lengths of the codes of a block, which are coded themselves.
Codes read_codes(Bits& bits) {
  constexpr std::size_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const std::size_t literals = bits.take(5) + 257, distances = bits.take(5) + 1, given = bits.take(4) + 4;
  std::array<std::uint8_t, std::size(order)> own{};
  for (std::size_t i = 0; i < given; ++i) own[order[i]] = static_cast<std::uint8_t>(bits.take(3));
  const Code code(own);
  std::vector<std::uint8_t> lengths;
  while (lengths.size() < literals + distances) {
    const std::uint32_t symbol = code.symbol(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<std::uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && lengths.empty()) throw Fault{"the first length of a code repeats another"};
    const std::uint8_t value = symbol == 16 ? lengths.back() : std::uint8_t{0};
    const std::size_t times = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    lengths.insert(lengths.end(), times, value);
  }
  if (lengths.size() > literals + distances) throw Fault{"a block has too many lengths of codes"};
  const std::span<const std::uint8_t> all = lengths;
  return {Code(all.first(literals)), Code(all.subspan(literals))};
}

/// The output, and how much of it is written.
struct Output {
  std::span<std::byte> bytes;
  std::size_t size = 0;

  void require(std::size_t count) const {
    if (count > bytes.size() - size) throw Fault{"it has more bytes than its header says"};
  }
  void append(std::byte byte) {
    require(1);
    bytes[size++] = byte;
  }
  /// Repeats bytes, which may overlap those that are written.
  void repeat(std::size_t distance, std::size_t count) {
    if (distance > size) throw Fault{"a distance goes before the first byte"};
    require(count);
    for (; count > 0; --count, ++size) bytes[size] = bytes[size - distance];
  }
};

void read_symbols(Bits& bits, const Codes& codes, Output& out) {
  constexpr std::uint16_t lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  constexpr std::uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  constexpr std::size_t most_distances = 30;
  for (;;) {
    const std::uint32_t symbol = codes.literals.symbol(bits);
    if (symbol < 256) {
      out.append(std::byte(symbol));
      continue;
    }
    if (symbol == 256) return;
    const std::size_t i = symbol - 257;
    if (i >= std::size(lengths)) throw Fault{"a length has an unknown code"};
    const std::size_t length = lengths[i] + bits.take(length_bits[i]);
    const std::uint32_t code = codes.distances.symbol(bits);
    if (code >= most_distances) throw Fault{"a distance has an unknown code"};
    const int extra = code < 4 ? 0 : static_cast<int>(code / 2 - 1);
    const std::size_t base = code < 4 ? code + 1 : (std::size_t{2 + code % 2} << extra) + 1;
    out.repeat(base + bits.take(extra), length);
  }
}

void read_stored(Bits& bits, Output& out) {
  std::array<std::byte, 4> header{};
  bits.copy(header);
  const auto number = [&](std::size_t at) {
    return std::to_integer<std::uint32_t>(header[at]) | std::to_integer<std::uint32_t>(header[at + 1]) << 8;
  };
  if ((number(0) ^ number(2)) != 0xffff) throw Fault{"a stored block has two sizes"};
  out.require(number(0));
  bits.copy(out.bytes.subspan(out.size, number(0)));
  out.size += number(0);
}

}  // namespace

std::optional<std::string_view> inflate(std::span<const std::byte> from, std::span<std::byte> to) try {
  Bits bits(from);
  Output out{to};
  for (bool is_last = false; !is_last;) {
    is_last = bits.take(1) == 1;
    switch (bits.take(2)) {
      case 0: read_stored(bits, out); break;
      case 1: read_symbols(bits, fixed_codes(), out); break;
      case 2: read_symbols(bits, read_codes(bits), out); break;
      default: throw Fault{"a block has an unknown kind"};
    }
  }
  if (out.size != to.size()) return "it has fewer bytes than its header says";
  return std::nullopt;
} catch (const Fault& fault) {
  return fault.text;
}

}  // namespace lathe
