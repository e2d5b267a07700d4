#include "models/text/dataset/token_batches.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/support/error.h"

namespace lathe {

namespace {

constexpr std::int64_t no_label = -100,
                       multiple = 16;  // row lengths are multiples of this, so that there are few different ones

/// Packs examples into rows of `context` tokens by best fit decreasing: longest examples first, each into the fullest
/// row with enough room. Rows are ordered by their first examples, and each row is sorted.
std::vector<std::vector<std::size_t>> packed(const std::vector<Example>& examples, std::int64_t context) {
  std::vector<std::size_t> order(examples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return examples[a].size() > examples[b].size(); });
  std::vector<std::vector<std::size_t>> rows;
  std::multimap<std::int64_t, std::size_t> room;  // row by free space
  for (const std::size_t i : order) {
    const std::int64_t size = examples[i].size();
    const auto found = room.lower_bound(size);
    std::size_t row = rows.size();
    std::int64_t left = context;
    if (found != room.end()) {
      std::tie(left, row) = *found;
      room.erase(found);
    } else {
      rows.emplace_back();
    }
    rows[row].push_back(i);
    room.emplace(left - size, row);
  }
  for (auto& row : rows) std::sort(row.begin(), row.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

std::vector<Example> split_off(std::vector<Example>& examples, double share, std::uint64_t seed) {
  const auto n = static_cast<std::int64_t>(examples.size());
  LATHE_ASSERT(share > 0 && share < 1 && n >= 2);
  const auto count = std::clamp<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(n)), 1, n - 1);
  const std::vector<std::uint32_t> order = shuffled(n, seed, UINT64_MAX);
  std::vector<bool> taken(examples.size());
  for (std::int64_t i = 0; i < count; ++i) taken[order[i]] = true;
  std::vector<Example> apart, rest;
  for (std::size_t i = 0; i < examples.size(); ++i) (taken[i] ? apart : rest).push_back(std::move(examples[i]));
  examples = std::move(rest);
  return apart;
}

TokenBatches::TokenBatches(std::vector<Example> examples, const BatchOptions& options)
    : options_(options), examples_(std::move(examples)) {
  LATHE_ASSERT(!examples_.empty() && options.batch >= 1 && options.accumulate >= 1);
  for (const Example& example : examples_) {
    LATHE_ASSERT(example.size() <= options.context && example.predictions() > 0);
    tokens_ += example.size();
    predictions_ += example.predictions();
  }
  if (options.pack) {
    rows_ = packed(examples_, options.context);
  } else {
    for (std::size_t i = 0; i < examples_.size(); ++i) rows_.push_back({i});
  }
  order_.emplace(rows(), options.seed);
}

std::int64_t TokenBatches::labels_of(const Row& row) const {
  return std::accumulate(row.begin(), row.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::size_t i) { return sum + examples_[i].predictions(); });
}

std::int64_t TokenBatches::size_of(const Row& row) const {
  return std::accumulate(row.begin(), row.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::size_t i) { return sum + examples_[i].size(); });
}

std::int64_t TokenBatches::predictions_of(std::int64_t step) const {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < options_.batch; ++i) sum += labels_of(row_of(step * options_.batch + i));
  return sum;
}

std::int64_t TokenBatches::tokens_of(std::int64_t step) const {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < options_.batch; ++i) sum += size_of(row_of(step * options_.batch + i));
  return sum;
}

Tensors TokenBatches::training(std::int64_t step) const {
  const std::int64_t first = step - step % options_.accumulate;
  std::int64_t labels = 0;
  for (std::int64_t i = 0; i < options_.accumulate; ++i) labels += predictions_of(first + i);
  std::vector<const Row*> rows;
  for (std::int64_t i = 0; i < options_.batch; ++i) rows.push_back(&row_of(step * options_.batch + i));
  return tensors(rows, static_cast<double>(options_.accumulate) / static_cast<double>(labels));
}

std::int64_t TokenBatches::evaluation_batches() const { return (rows() + options_.batch - 1) / options_.batch; }

std::int64_t TokenBatches::updates_per_epoch() const {
  const std::int64_t rows_an_update = options_.batch * options_.accumulate;
  return (rows() + rows_an_update - 1) / rows_an_update;
}

Tensors TokenBatches::evaluation(std::int64_t index, std::int64_t count) const {
  static const Row empty;
  std::int64_t labels = 0;
  for (std::int64_t i = 0; i < std::min(count * options_.batch, this->rows()); ++i) labels += labels_of(rows_[i]);
  std::vector<const Row*> rows;
  for (std::int64_t i = index * options_.batch; i < (index + 1) * options_.batch; ++i)
    rows.push_back(i < this->rows() ? &rows_[i] : &empty);
  return tensors(rows, static_cast<double>(count) / static_cast<double>(labels));
}

Tensors TokenBatches::tensors(const std::vector<const Row*>& rows, double weight) const {
  std::int64_t length = options_.context;
  if (!options_.pack) {
    std::int64_t longest = 1;
    for (const Row* row : rows) longest = std::max(longest, size_of(*row));
    length = std::min(length, (longest + multiple - 1) / multiple * multiple);
  }
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows.size()), length};
  Tensors made{{"input_ids", HostTensor(i64, shape)},
               {"labels", HostTensor(i64, shape)},
               {"weight", HostTensor::scalar(weight, f64)}};
  if (options_.pack) {
    made.emplace("position_ids", HostTensor(i64, shape));
    made.emplace("segments", HostTensor(i64, shape));
  } else if (options_.lengths) {
    HostTensor lengths(i64, {shape[0]});
    for (std::size_t i = 0; i < rows.size(); ++i)
      lengths.set_int(static_cast<std::int64_t>(i), std::max<std::int64_t>(1, size_of(*rows[i])));
    made.emplace("lengths", std::move(lengths));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) write(*rows[i], static_cast<std::int64_t>(i), length, made);
  return made;
}

/// Writes a row at index `at`. Padding is token 0 at position 0, in segment 0.
void TokenBatches::write(const Row& row, std::int64_t at, std::int64_t length, Tensors& to) const {
  const auto part = [&](const char* name) {
    return to.at(name).as<std::int64_t>().subspan(static_cast<std::size_t>(at * length),
                                                  static_cast<std::size_t>(length));
  };
  const auto ids = part("input_ids"), labels = part("labels");
  std::size_t end = 0;
  std::int64_t segment = 0;
  std::fill(labels.begin(), labels.end(), no_label);
  for (const std::size_t i : row) {
    const Example& example = examples_[i];
    for (std::size_t k = 0; k < example.ids.size(); ++k) {
      ids[end + k] = example.ids[k];
      if (example.learned[k]) labels[end + k] = example.ids[k];
    }
    if (options_.pack) {
      const auto positions = part("position_ids"), segments = part("segments");
      std::iota(positions.begin() + static_cast<std::ptrdiff_t>(end),
                positions.begin() + static_cast<std::ptrdiff_t>(end + example.ids.size()), std::int64_t{0});
      std::fill_n(segments.begin() + static_cast<std::ptrdiff_t>(end), example.ids.size(), ++segment);
    }
    end += example.ids.size();
  }
}

}  // namespace lathe
