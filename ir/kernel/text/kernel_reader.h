#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/kernel.h"
#include "ir/kernel/text/name_scope.h"
#include "ir/support/syntax/token_stream.h"

namespace lathe::kernel {

/// Reads operands of one kernel's text and adds what they define to the kernel. Names are visible in their block and
/// in nested blocks.
class KernelReader : public IntrinsicReader {
 public:
  KernelReader(syntax::TokenStream& tokens, const IntrinsicFamily& also) : in(tokens), also_(also) {}
  KernelReader(const KernelReader&) = delete;
  KernelReader& operator=(const KernelReader&) = delete;

  syntax::TokenStream& in;
  Kernel kernel;

  // Operands, as in IntrinsicReader.
  ValueId value() override;
  BufferId buffer() override;
  VarId var() override;
  int map() override;
  int number() override;
  int suffix() override;
  void expect(std::string_view token) override;
  bool accept(std::string_view token) override;
  bool at_access() const override;
  Type type(VarId var) const override { return kernel.vars[var].type; }
  ValueId index() override;

  Type type();    ///< "f32x16"
  DType dtype();  ///< "f32"
  /// Takes a word, or a name in double quotes; `what` describes the expectation in errors.
  syntax::Token name(std::string_view what);
  /// Takes the name of an operation and returns it without its suffix, such as "reduce" of "reduce.add". The suffix
  /// can then be read; `end_suffix` throws if it was not.
  std::string_view operation_name();
  std::string_view suffix_word();
  void end_suffix() const;

  /// Define the name of a token. Throw if it is visible already.
  ValueId define_value(const syntax::Token& name, Instruction instruction);
  void define_buffer(const syntax::Token& name, BufferInfo info);
  VarId define_var(const syntax::Token& name, Type type);
  void define_dim(const syntax::Token& name);

  /// Runs `read` and forgets the names that it defined.
  template <class Read>
  void scoped(const Read& read) {
    const std::size_t values = values_.enter(), buffers = buffers_.enter(), vars = vars_.enter();
    read();
    values_.leave(values), buffers_.leave(buffers), vars_.leave(vars);
  }

  /// Return the record of a name, or null.
  const IntrinsicRecord* operation(std::string_view name) const;
  const IntrinsicRegionRecord* region(std::string_view name) const;
  /// Returns the names of all operations, or of all regions.
  std::vector<std::string_view> operation_names() const;
  std::vector<std::string_view> region_names() const;

 private:
  bool at_constant() const;
  ValueId constant();
  Type constant_type();
  ValueId find_value();
  int find(const NameScope& scope, const std::string& name, const syntax::Token& at, std::string_view what) const;
  void define(NameScope& scope, const syntax::Token& name, int id) const;
  ValueId add_value(Instruction instruction);

  const IntrinsicFamily& also_;
  NameScope values_, buffers_, vars_;
  std::map<std::tuple<DType, int, std::int64_t, std::uint64_t>, ValueId> constants_;
  syntax::Token operation_;
  std::string_view suffix_;
};

}  // namespace lathe::kernel
