#include "runtime/files/zip/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "ir/support/error.h"

namespace lathe {

namespace {

/// zlib's state of a raw deflate stream: without its own header and checksum.
class RawInflate {
 public:
  RawInflate() {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw InternalError("zlib gives no state for a raw stream");
  }
  ~RawInflate() { inflateEnd(&stream_); }
  RawInflate(const RawInflate&) = delete;
  RawInflate& operator=(const RawInflate&) = delete;

  /// Decompresses the next part. Moves the starts of both spans behind the bytes that were used.
  int next(std::span<const std::byte>& from, std::span<std::byte>& to) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t given = std::min(most, from.size()), room = std::min(most, to.size());
    // zlib only reads its input, but an older interface has no const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    from = from.subspan(given - stream_.avail_in);
    to = to.subspan(room - stream_.avail_out);
    return status;
  }

  const char* message() const { return stream_.msg ? stream_.msg : "its bytes are no deflate stream"; }

 private:
  z_stream stream_{};
};

}  // namespace

std::optional<std::string_view> inflate(std::span<const std::byte> from, std::span<std::byte> to) {
  RawInflate stream;
  std::byte beyond[1];
  std::span<std::byte> extra(beyond);
  for (;;) {
    // After the last expected byte, the stream must end without another one.
    const bool is_full = to.empty();
    const int status = stream.next(from, is_full ? extra : to);
    if (extra.empty()) return "it has more bytes than its header says";
    if (status == Z_STREAM_END) break;
    if (status == Z_BUF_ERROR || (status == Z_OK && from.empty() && (is_full || !to.empty())))
      return "it ends within a block";
    if (status != Z_OK) return stream.message();
  }
  if (!to.empty()) return "it has fewer bytes than its header says";
  if (!from.empty()) return "bytes follow its last block";
  return std::nullopt;
}

}  // namespace lathe
