// Error texts of api/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

/// Thrown if the masked original gives NaN or only infinities on random inputs of every kind.
class NoNumbersError : public UnsupportedError {
 public:
  using UnsupportedError::UnsupportedError;
};
/// --recover needs data, and none were given.
ConfigError recovery_without_data();
/// Calibration data without a complete batch.
ConfigError no_calibration_data(int64_t batch);
ConfigError unknown_engine(std::string_view name, std::span<const std::string> known);
/// A command that `option` gives; `output` is what it printed.
ModelError command_failed(std::string_view option, std::string_view command, std::string_view why,
                          std::string_view output);

}  // namespace parsimony::errors
