#pragma once

#include <pthread.h>

#include <cstddef>

namespace lathe::test {

/// While alive, no thread can be started: its stack would exceed the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t all{};
    ::pthread_getattr_default_np(&all);
    ::pthread_attr_getstacksize(&all, &before_);
    ::pthread_attr_destroy(&all);
    set(std::size_t{1} << 60);
  }
  ~NoThreads() { set(before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static void set(std::size_t bytes) {
    pthread_attr_t attributes{};
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, bytes);
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }

  std::size_t before_ = 0;
};

}  // namespace lathe::test
