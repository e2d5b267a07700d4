#include "passes/lowering/verify/verify_accesses.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/support/error.h"
#include "passes/lowering/verify/sample_sizes.h"

namespace lathe {

using kernel::AccessKind;
using kernel::AccessSearch;
using kernel::AccessSite;
using Answer = AccessSearch::Answer;

namespace {

constexpr std::int64_t most_ranges = 20'000;          // budget of the searches for one buffer
constexpr std::int64_t most_ranges_of_loads = 2'000;  // same, for out-of-bounds loads
constexpr int ends = 4, between = 2;                  // numbers of sampled elements

/// All accesses to one buffer with `elements` elements, at known sizes.
class Accesses {
 public:
  Accesses(std::int64_t elements, std::vector<AccessSearch> stores, std::vector<AccessSearch> loads)
      : elements_(elements), stores_(std::move(stores)), loads_(std::move(loads)) {}

  /// Finds an element that a load certainly reads out of bounds.
  std::optional<std::string> outside_load() {
    budget_ = most_ranges_of_loads;
    for (AccessSearch& site : loads_) {
      if (!site.may_leave(elements_)) continue;
      const auto end = site.at_end(0, next());
      if (end && end->certain && (end->element < 0 || end->element >= elements_))
        return outside("read", end->element);
      for (const std::int64_t element : {elements_, std::int64_t{-1}})
        if (budget_ > 0 && site.reaches(element, budget_) == Answer::yes) return outside("read", element);
    }
    return std::nullopt;
  }

  /// Finds an element that is not written but should be. If the buffer has room, only elements that a load reads
  /// count.
  std::optional<std::string> missing_store(bool has_room) {
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

  /// Checks the element after the end of the last store's loops, or after some loops of a random store.
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
    if (is_stored(end->element)) return std::nullopt;
    return fmt::format("element {} of {} is read and not written", end->element, elements_);
  }

  std::string missing(std::int64_t element) const {
    return fmt::format("element {} of {} is not written", element, elements_);
  }
  std::string outside(std::string_view what, std::int64_t element) const {
    return fmt::format("element {} of {} is {}", element, elements_, what);
  }

  /// Tries the store that matched last first.
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

const std::vector<AccessSite>& AccessVerifier::sites_of(const Binding& at, AccessKind kind) {
  const int kernel = launch_of(at).kernel;
  const auto [found, is_new] = sites_.try_emplace({kernel, at.parameter, kind});
  if (is_new) found->second = access_sites(program_.kernels[kernel], at.parameter, kind);
  return found->second;
}

std::vector<AccessSearch> AccessVerifier::searches(std::span<const Binding> bindings, AccessKind kind,
                                                   const DimBindings& sizes) {
  std::vector<AccessSearch> found;
  for (const Binding& at : bindings) {
    std::vector<std::int64_t> dims;
    for (const Dim& dim : launch_of(at).dims) dims.push_back(dim.evaluate(sizes));
    for (const AccessSite& site : sites_of(at, kind)) found.emplace_back(site, dims);
  }
  return found;
}

/// Runs `check` for each sample binding for which sizes fit in 64 bits.
std::optional<std::string> AccessVerifier::at_sizes(const std::function<Checked(const DimBindings&)>& check) {
  for (const DimBindings& sizes : sizes_) try {
      if (const Checked fault = check(sizes)) return *fault + sizes_text(sizes);
    } catch (const UserError&) {
    }
  return std::nullopt;
}

std::optional<AccessVerifier::Fault> AccessVerifier::find_fault(int first_launch, int last_launch) {
  std::map<int, Written> written;  // by buffer
  for (int l = first_launch; l <= last_launch; ++l) {
    const Launch& launch = program_.launches[l];
    const kernel::ParameterUse& use = uses_[launch.kernel];
    for (std::size_t p = 0; p < launch.buffers.size(); ++p) {
      const int b = launch.buffers[p];
      const ProgramBuffer& buffer = program_.buffers[b];
      const Binding here{l, static_cast<int>(p)};
      if (use.loaded[p])
        if (auto what = at_sizes([&](const DimBindings& sizes) { return check_loads(buffer, here, sizes); }))
          return Fault{b, l, *what};
      if (buffer.kind == ProgramBuffer::Kind::scratch) continue;
      if (use.stored[p]) written[b].by.push_back(here);
      if (launch.leaves_remainder(here.parameter)) written[b].in_part = true;
      if (use.loaded[p] && buffer.has_room) written[b].read_by.push_back(here);
    }
  }
  for (const auto& [b, how] : written) {
    if (how.by.empty() || how.in_part) continue;
    const ProgramBuffer& buffer = program_.buffers[b];
    if (auto what = at_sizes([&](const DimBindings& sizes) { return check_stores(buffer, how, sizes); }))
      return Fault{b, how.by.back().launch, *what};
  }
  return std::nullopt;
}

/// Adds the launch dims that a site depends on. Salts, which only distinguish layers, do not affect elements.
void AccessVerifier::add_to_key(Key& key, const Binding& at, AccessKind kind, const DimBindings& sizes) {
  const Launch& launch = launch_of(at);
  std::set<int> used;
  for (const AccessSite& site : sites_of(at, kind))
    for (const AccessSite::DimSlot& dim : site.dims) used.insert(dim.dim);
  key.insert(key.end(), {launch.kernel, at.parameter, static_cast<std::int64_t>(kind)});
  for (const int dim : used) key.push_back(launch.dims[dim].evaluate(sizes));
}

AccessVerifier::Checked AccessVerifier::check_loads(const ProgramBuffer& buffer, const Binding& at,
                                                    const DimBindings& sizes) {
  const std::int64_t elements = buffer.elements.evaluate(sizes);
  if (elements <= 0 || is_skipped(program_, launch_of(at), sizes)) return std::nullopt;
  Key key{elements};
  add_to_key(key, at, AccessKind::load, sizes);
  if (inside_.contains(key)) return std::nullopt;
  auto fault = Accesses(elements, {}, searches({&at, 1}, AccessKind::load, sizes)).outside_load();
  if (!fault) inside_.insert(std::move(key));
  return fault;
}

AccessVerifier::Checked AccessVerifier::check_stores(const ProgramBuffer& buffer, const Written& written,
                                                     const DimBindings& sizes) {
  const std::int64_t elements = buffer.elements.evaluate(sizes);
  if (elements <= 0) return std::nullopt;
  Key key{elements};
  for (const Binding& at : written.by) add_to_key(key, at, AccessKind::store, sizes);
  for (const Binding& at : written.read_by) add_to_key(key, at, AccessKind::load, sizes);
  if (whole_.contains(key)) return std::nullopt;
  auto fault = Accesses(elements, searches(written.by, AccessKind::store, sizes),
                        searches(written.read_by, AccessKind::load, sizes))
                   .missing_store(buffer.has_room);
  if (!fault) whole_.insert(std::move(key));
  return fault;
}

}  // namespace lathe
