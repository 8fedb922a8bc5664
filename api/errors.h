// Error texts of api/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

/// Of arrays by input name: --sample and --calibration.
ConfigError bad_arrays(std::string_view found);
ConfigError array_of_other_shape(std::string_view array, std::string_view found,
                                 std::string_view wanted);
/// Of files of samples.
IoError cannot_list(std::string_view folder, std::string_view why);
ConfigError no_files_below(std::string_view folder, std::string_view endings);
ModelError damaged_image(std::string_view file, int64_t offset, std::string_view why);
ConfigError bad_image_spec(std::string_view word);
/// Of the original, on random inputs of all kinds.
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
