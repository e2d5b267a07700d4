#include "models/text/template/library/generators.h"

namespace lathe::jinja {

namespace {

class Generator final : public Iterator {
 public:
  explicit Generator(std::function<Iterator*(Runtime&)> start) : start_(std::move(start)) {}

 private:
  Value advance(Runtime& runtime) override {
    if (!items_) items_ = start_(runtime);
    return items_->next(runtime);
  }

  std::function<Iterator*(Runtime&)> start_;
  Iterator* items_ = nullptr;
};

class Filtered final : public Iterator {
 public:
  Filtered(Iterator* items, std::function<bool(Runtime&, const Value&)> keep)
      : items_(items), keep_(std::move(keep)) {}

 private:
  Value advance(Runtime& runtime) override {
    Value item = items_->next(runtime);
    for (; !item.is_missing() && !keep_(runtime, item); item = items_->next(runtime)) runtime.spend(4);
    return item;
  }

  Iterator* items_;
  std::function<bool(Runtime&, const Value&)> keep_;
};

class Mapped final : public Iterator {
 public:
  Mapped(Iterator* items, std::function<Value(Runtime&, const Value&)> change)
      : items_(items), change_(std::move(change)) {}

 private:
  Value advance(Runtime& runtime) override {
    runtime.spend(4);
    Value item = items_->next(runtime);
    return item.is_missing() ? item : change_(runtime, item);
  }

  Iterator* items_;
  std::function<Value(Runtime&, const Value&)> change_;
};

}  // namespace

Iterator* make_generator(Runtime& runtime, std::function<Iterator*(Runtime&)> start) {
  return runtime.make<Generator>(std::move(start));
}
Iterator* make_filtered(Runtime& runtime, Iterator* items, std::function<bool(Runtime&, const Value&)> keep) {
  return runtime.make<Filtered>(items, std::move(keep));
}
Iterator* make_mapped(Runtime& runtime, Iterator* items, std::function<Value(Runtime&, const Value&)> change) {
  return runtime.make<Mapped>(items, std::move(change));
}

}  // namespace lathe::jinja
