// Error texts of data/.
#pragma once

#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

// Errors of arrays by input name: --sample and --calibration.
ConfigError array_of_other_shape(std::string_view array, std::string_view found,
                                 std::string_view expected);
IoError cannot_list(std::string_view folder, std::string_view why);
ConfigError no_files_below(std::string_view folder, std::string_view endings);
ModelError damaged_image(std::string_view file, int64_t offset, std::string_view why);
ConfigError bad_image_spec(std::string_view word);

// Errors of data sets. In compressed files byte offsets refer to the decompressed data.
ConfigError bad_spec(std::string_view spec, std::string_view expected);
ModelError no_samples(std::string_view file);
/// The file is longer than its `expected` bytes.
ModelError too_long(std::string_view file, int64_t size, int64_t expected);
ModelError bad_label(std::string_view file, int64_t offset, int64_t label, int64_t classes);
ModelError counts_differ(std::string_view values, int64_t samples, std::string_view labels,
                         int64_t label_count);

}  // namespace parsimony::errors
