// The names of criteria over single elements, and the parameters they contain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parsimony {

enum class ElementMethod : uint8_t {
  kLevel,     ///< least magnitude of the matrix, or of all
  kNm,        ///< least magnitude of every M inputs
  kBlock,     ///< blocks of least norm
  kWanda,     ///< least |w|·‖x‖ of each output row
  kSparseGpt  ///< least loss, the remaining elements compensate
};

/// At most `n` of every `m` neighbours along the input axis are kept; m = 0: no pattern.
struct NmPattern {
  int n = 0;
  int m = 0;

  bool exists() const { return m > 0; }
  double ratio() const { return 1.0 - static_cast<double>(n) / m; }
  bool operator==(const NmPattern&) const = default;
};

struct ElementRule {
  ElementMethod method = ElementMethod::kLevel;
  NmPattern pattern = {};
  int block_rows = 0;  ///< of kBlock: output rows
  int block_columns = 0;

  bool needs_data() const {
    return method == ElementMethod::kWanda || method == ElementMethod::kSparseGpt;
  }
  bool operator==(const ElementRule&) const = default;
};

/// Name of the row of the criterion table: "2:4" is "nm", "block:4x1" is "block".
std::string_view base_name(std::string_view criterion);

/// "level", "nm" (which is "2:4"), "N:M", "block:ROWSxCOLUMNS", "wanda_elements", "sparsegpt", and
/// the last two with a pattern: "sparsegpt:2:4". Empty for criteria that score channels.
/// @throws ConfigError for an unknown name, or for numbers that are missing or make no sense
std::optional<ElementRule> element_rule(std::string_view criterion);

/// "2:4"
std::string to_text(const NmPattern& pattern);

}  // namespace parsimony
