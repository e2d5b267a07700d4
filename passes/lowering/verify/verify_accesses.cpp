#include "passes/lowering/verify/verify_accesses.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>

#include "ir/kernel/verify/access_search.h"
#include "ir/support/error.h"
#include "passes/lowering/verify/sample_sizes.h"

namespace lathe {

using kernel::AccessKind;
using kernel::AccessSearch;
using kernel::AccessSite;
using Answer = AccessSearch::Answer;

namespace {

constexpr std::int64_t most_ranges = 20'000;  // that the searches for one buffer look at
constexpr int ends = 4, between = 2;          // elements that are asked for

/// Everything that touches one buffer of so many elements, at known sizes.
class Accesses {
 public:
  Accesses(std::int64_t elements, std::vector<AccessSearch> stores, std::vector<AccessSearch> loads)
      : elements_(elements), stores_(std::move(stores)), loads_(std::move(loads)) {}

  std::optional<std::string> find_fault(bool has_room) {
    if (!has_room) {
      for (const std::int64_t element : {std::int64_t{0}, elements_ - 1})
        if (!is_stored(element)) return missing(element);
      for (int i = 0; i < between; ++i) {
        const auto element = static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(elements_));
        if (!is_stored(element)) return missing(element);
      }
    }
    for (int i = 0; i < ends; ++i) {
      std::optional<std::string> fault = behind_an_end(has_room, i == 0);
      if (!fault && !loads_.empty()) fault = at_a_load();
      if (fault) return fault;
    }
    return std::nullopt;
  }

 private:
  /// What follows where the last store's loops end, or some loops of some store.
  std::optional<std::string> behind_an_end(bool has_room, bool of_last) {
    AccessSearch& site = of_last ? stores_.back() : any(stores_);
    const auto end = site.at_end(of_last ? 0 : any_counter(site), next());
    if (!end) return std::nullopt;
    if (end->certain && (end->element < 0 || end->element >= elements_)) return outside("written", end->element);
    const std::int64_t after = end->element + 1;
    if (has_room || after <= 0 || after >= elements_ || is_stored(after)) return std::nullopt;
    return missing(after);
  }

  std::optional<std::string> at_a_load() {
    AccessSearch& site = any(loads_);
    const auto end = site.at_end(any_counter(site), next());
    if (!end || !end->certain) return std::nullopt;
    if (end->element < 0 || end->element >= elements_) return outside("read", end->element);
    if (is_stored(end->element)) return std::nullopt;
    return fmt::format("element {} of {} is read and not written", end->element, elements_);
  }

  std::string missing(std::int64_t element) const {
    return fmt::format("element {} of {} is not written", element, elements_);
  }
  std::string outside(std::string_view what, std::int64_t element) const {
    return fmt::format("element {} of {} is {}", element, elements_, what);
  }

  /// Asks first who stored the one before.
  bool is_stored(std::int64_t element) {
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      const std::size_t s = (last_ + i) % stores_.size();
      if (stores_[s].reaches(element, budget_) == Answer::no) continue;
      last_ = s;
      return true;
    }
    return false;
  }

  std::uint64_t next() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return random_ >> 20;
  }
  AccessSearch& any(std::vector<AccessSearch>& sites) { return sites[next() % sites.size()]; }
  std::size_t any_counter(const AccessSearch& site) { return next() % (site.counters() + 1); }

  std::int64_t elements_;
  std::vector<AccessSearch> stores_, loads_;
  std::int64_t budget_ = most_ranges;
  std::uint64_t random_ = 1;
  std::size_t last_ = 0;
};

std::string sizes_text(const DimBindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? ", " : " ", name, size);
  return text;
}

}  // namespace

AccessVerifier::AccessVerifier(const Program& program, std::span<const kernel::ParameterUse> uses)
    : program_(program), uses_(uses), sizes_(sample_sizes(program)) {}

const std::vector<AccessSite>& AccessVerifier::stores_of(const Binding& at) {
  const int kernel = launch_of(at).kernel;
  const auto [found, is_new] = stores_.try_emplace({kernel, at.parameter});
  if (is_new)
    found->second = access_sites(program_.kernels[static_cast<std::size_t>(kernel)], at.parameter, AccessKind::store);
  return found->second;
}

std::optional<AccessVerifier::Fault> AccessVerifier::find_fault(int first_launch, int last_launch) {
  std::map<int, Written> written;  // by buffer
  for (int l = first_launch; l <= last_launch; ++l) {
    const Launch& launch = program_.launches[static_cast<std::size_t>(l)];
    const kernel::ParameterUse& use = uses_[static_cast<std::size_t>(launch.kernel)];
    for (std::size_t p = 0; p < launch.buffers.size(); ++p) {
      const ProgramBuffer& buffer = program_.buffers[static_cast<std::size_t>(launch.buffers[p])];
      if (buffer.kind == ProgramBuffer::Kind::scratch) continue;
      const Binding here{l, static_cast<int>(p)};
      if (use.stored[p]) written[launch.buffers[p]].by.push_back(here);
      if (launch.leaves_remainder(here.parameter)) written[launch.buffers[p]].in_part = true;
      if (use.loaded[p] && buffer.has_room) written[launch.buffers[p]].read_by.push_back(here);
    }
  }
  for (const auto& [b, how] : written) {
    if (how.by.empty() || how.in_part) continue;
    const ProgramBuffer& buffer = program_.buffers[static_cast<std::size_t>(b)];
    for (const DimBindings& sizes : sizes_) try {
        if (auto what = check(buffer, how, sizes)) return Fault{b, how.by.back().launch, *what + sizes_text(sizes)};
      } catch (const UserError&) {  // sizes that do not fit 64 bits
      }
  }
  return std::nullopt;
}

AccessVerifier::Key AccessVerifier::key_of(const Written& written, std::int64_t elements, const DimBindings& sizes) {
  Key key{elements};
  const auto add = [&](const Binding& at, const std::function<bool(int dim)>& matters) {
    const Launch& launch = launch_of(at);
    key.insert(key.end(), {launch.kernel, at.parameter});
    for (std::size_t d = 0; d < launch.dims.size(); ++d)
      if (matters(static_cast<int>(d))) key.push_back(launch.dims[d].evaluate(sizes));
  };
  for (const Binding& at : written.by) {  // salts tell layers apart, and no element
    std::set<int> used;
    for (const AccessSite& site : stores_of(at))
      for (const AccessSite::DimSlot& dim : site.dims) used.insert(dim.dim);
    add(at, [&](int dim) { return used.contains(dim); });
  }
  for (const Binding& at : written.read_by) add(at, [](int) { return true; });
  return key;
}

std::optional<std::string> AccessVerifier::check(const ProgramBuffer& buffer, const Written& written,
                                                 const DimBindings& sizes) {
  const std::int64_t elements = buffer.elements.evaluate(sizes);
  if (elements <= 0) return std::nullopt;
  Key key = key_of(written, elements, sizes);
  if (sound_.contains(key)) return std::nullopt;
  const auto add = [&](std::vector<AccessSearch>& to, const std::vector<AccessSite>& sites, const Binding& at) {
    std::vector<std::int64_t> dims;
    for (const Dim& dim : launch_of(at).dims) dims.push_back(dim.evaluate(sizes));
    for (const AccessSite& site : sites) to.emplace_back(site, dims);
  };
  std::vector<AccessSearch> stores, loads;
  for (const Binding& at : written.by) add(stores, stores_of(at), at);
  for (const Binding& at : written.read_by) {
    const kernel::Kernel& kernel = program_.kernels[static_cast<std::size_t>(launch_of(at).kernel)];
    add(loads, access_sites(kernel, at.parameter, AccessKind::load), at);
  }
  auto fault = Accesses(elements, std::move(stores), std::move(loads)).find_fault(buffer.has_room);
  if (!fault) sound_.insert(std::move(key));
  return fault;
}

}  // namespace lathe
