#pragma once

#include <fmt/core.h>
#include <sys/mount.h>

#include <cstddef>
#include <filesystem>
#include <utility>

namespace lathe::robustness {

/// A file system mounted on a folder, unmounted with the object.
class Mount {
 public:
  Mount(std::filesystem::path folder, std::size_t kilobytes) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, fmt::format("size={}k", kilobytes).c_str()) == 0;
  }
  ~Mount() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  explicit operator bool() const { return mounted_; }
  void grow() const { ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, "size=64m"); }
  void make_read_only() const { ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64m"); }

 private:
  std::filesystem::path folder_;
  bool mounted_ = false;
};

}  // namespace lathe::robustness
