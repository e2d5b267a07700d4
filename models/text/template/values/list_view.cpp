#include "models/text/template/values/list_view.h"

namespace lathe::jinja {

const Value& ListView::item(std::size_t at) const {
  const auto index = static_cast<std::size_t>(start + static_cast<std::int64_t>(at) * step);
  return index == replaced ? replacement : (*source)[index];
}

std::vector<Value> ListView::items() const {
  std::vector<Value> all;
  all.reserve(count);
  for (std::size_t at = 0; at < count; ++at) all.push_back(item(at));
  return all;
}

ListView ListView::slice(std::int64_t first, std::int64_t stride, std::int64_t size) const {
  ListView part = *this;
  part.start = start + first * step;
  part.step = size > 1 ? step * stride : 1;
  part.count = static_cast<std::size_t>(size);
  return part;
}

bool ListView::reaches_end() const { return step == 1 && static_cast<std::size_t>(start) + count == total; }

}  // namespace lathe::jinja
