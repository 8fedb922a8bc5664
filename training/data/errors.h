// Error texts of data sets. `file` is the path; in compressed files byte offsets refer to the
// decompressed data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::training::errors {

using namespace parsimony::errors;  // NOLINT(google-build-using-namespace): one name for both

ConfigError unknown_dataset(std::string_view name, std::span<const std::string> known);
ConfigError bad_spec(std::string_view spec, std::string_view wanted);
ConfigError bad_data_option(std::string_view option, std::string_view found,
                            std::string_view wanted);
ConfigError split_too_small(std::string_view spec, int64_t samples, std::string_view part);
ConfigError tokens_have_no_scale(std::string_view spec);
ConfigError wrong_means(std::string_view spec, size_t found, int64_t channels);

IoError no_such_files(std::string_view folder, std::string_view wanted);
ConfigError several_files(std::string_view folder, std::span<const std::string> found);

ModelError no_samples(std::string_view file);
/// `wanted` are the bytes that the file should have at least.
ModelError too_long(std::string_view file, int64_t size, int64_t wanted);
/// A part of a record of `record` bytes remains.
ModelError partial_record(std::string_view file, int64_t size, int64_t record);
ModelError bad_label(std::string_view file, int64_t offset, int64_t label, int64_t classes);
ModelError bad_bytes(std::string_view file, int64_t offset, std::string_view found,
                     std::string_view wanted);
ModelError counts_differ(std::string_view values, int64_t samples, std::string_view labels,
                         int64_t label_count);
/// `train` and `test` describe their samples: "[3, 32, 32] uint8".
ModelError parts_differ(std::string_view spec, std::string_view train, std::string_view test);
ModelError damaged_gzip(std::string_view file, int64_t offset, std::string_view why);
ModelError not_finite(std::string_view file, int64_t offset);

ModelError no_classes(std::string_view folder);
ModelError no_images(std::string_view folder);
ModelError unknown_class(std::string_view folder, std::string_view name,
                         std::span<const std::string> classes);
ModelError sizes_differ(std::string_view file, const Shape& found, std::string_view first,
                        const Shape& wanted);

}  // namespace parsimony::training::errors
