#include "passes/lowering/program/print_exchanges.h"

#include <fmt/core.h>

namespace lathe {

namespace {

std::string part_line(const Exchange::Part& part, const Program& program) {
  const ProgramBuffer& from = program.buffers[static_cast<std::size_t>(part.from)];
  return fmt::format("  {} : {}[{}]  {}\n", part.op.to_string(), name(from.dtype), part.elements.to_string(),
                     part.loc.to_string());
}

}  // namespace

std::string print_exchanges(const Program& program) {
  if (program.exchanges.empty()) return "no exchanges: nothing comes from other processes\n";
  std::string text;
  for (std::size_t e = 0; e < program.exchanges.size(); ++e) {
    const Exchange& exchange = program.exchanges[e];
    const ExchangeSpan span = span_of(exchange, program);
    text += fmt::format("exchange {}: {} along {}={}, during launches {}..{}\n", e, exchange.parts[0].op.op_name(),
                        exchange.axis, exchange.ranks, span.first, span.last);
    for (const Exchange::Part& part : exchange.parts) text += part_line(part, program);
  }
  return text;
}

}  // namespace lathe
