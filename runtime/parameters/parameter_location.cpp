#include "runtime/parameters/parameter_location.h"

#include <fmt/core.h>

namespace lathe {

namespace {

std::string host_text(const ParameterLocation& location) {
  switch (location.host) {
    case ParameterLocation::Host::own: return "memory";
    case ParameterLocation::Host::lent: return "lent memory";
    case ParameterLocation::Host::file: break;
  }
  return location.file.string() + ", mapped";
}

}  // namespace

bool ParameterLocation::operator==(const ParameterLocation& other) const {
  const bool same_device = device.has_value() == other.device.has_value() &&
                           (!device || (device->type == other.device->type && device->id == other.device->id));
  return host == other.host && file == other.file && same_device && host_is_newest == other.host_is_newest &&
         device_is_newest == other.device_is_newest;
}

std::string to_string(const ParameterLocation& location) {
  const std::string host = host_text(location);
  if (!location.device) return host;
  const std::string device =
      fmt::format("{}:{}", location.device->type == dlpack::Device::cuda ? "cuda" : "device", location.device->id);
  if (!location.host_is_newest) return fmt::format("{} ({} is older)", device, host);
  if (!location.device_is_newest) return fmt::format("{} ({} is older)", host, device);
  return fmt::format("{} and {}", host, device);
}

}  // namespace lathe
