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
/// --recover was passed without calibration data.
ConfigError recovery_without_data();
/// Several criteria or scopes are to be compared without calibration data.
ConfigError comparison_without_data();
/// The calibration data do not fill a batch.
ConfigError no_calibration_data(int64_t batch);
ConfigError unknown_engine(std::string_view name, std::span<const std::string> known);
/// The command of `option` failed; `output` is what it printed.
ModelError command_failed(std::string_view option, std::string_view command, std::string_view why,
                          std::string_view output);

}  // namespace parsimony::errors
