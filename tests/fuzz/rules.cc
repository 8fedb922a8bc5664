// Any text is a list of rules of operators or a ConfigError, and what a rule says can be compiled.
#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/rules_file.h"
#include "tests/fuzz/support/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const parsimony::fuzz::MemoryLimit limit(size);
  try {
    for (const auto& rule :
         parsimony::parse_rules({reinterpret_cast<const char*>(data), size}, "acme.rules")) {
      parsimony::notation::parse(rule.line);
    }
  } catch (const parsimony::ConfigError&) {
    return 0;
  }
  return 0;
}
