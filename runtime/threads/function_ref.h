#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace lathe {

template <class Signature>
class FunctionRef;

/// A callable passed by reference: two pointers, no allocation. It must not outlive the callable.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<Result, F&, Args...>)
  FunctionRef(F&& callable)  // NOLINT: implicit, so that a lambda can be passed
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace lathe
