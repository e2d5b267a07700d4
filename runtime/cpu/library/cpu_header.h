#pragma once

#include <string>

#include "runtime/library/c_header.h"

namespace lathe {

/// The part of headers of libraries for CPUs.
class CpuHeader final : public HeaderMachine {
 public:
  explicit CpuHeader(const LibraryPlan& plan) : plan_(plan), p_(plan.prefix) {}

  std::string rules() const override;
  std::string shared_types() const override;
  std::string instance_members() const override;
  std::string call_members() const override;
  std::string init_comment() const override;
  std::string workspace_function() const override;
  std::string run_functions(const std::string& name, const std::string& graph) const override;

 private:
  const LibraryPlan& plan_;
  const std::string& p_;
};

}  // namespace lathe
