#include "parsimony/training/data/errors.h"

namespace parsimony::training::errors {

namespace {

std::string at(std::string_view file) { return std::string(file) + ": "; }

std::string at(std::string_view file, int64_t offset) {
  return at(file) + "byte " + std::to_string(offset) + ": ";
}

std::string list(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

ConfigError unknown_dataset(std::string_view name, std::span<const std::string> known) {
  return ConfigError("unknown data set " + in_quotes(name) + "; known are " + list(known) + "." +
                     did_you_mean(name, known));
}

ConfigError bad_spec(std::string_view spec, std::string_view wanted) {
  return ConfigError("data " + in_quotes(spec) + ": wanted " + std::string(wanted));
}

ConfigError bad_data_option(std::string_view option, std::string_view found,
                            std::string_view wanted) {
  return ConfigError("data: " + std::string(option) + " is " + std::string(found) + ", wanted " +
                     std::string(wanted));
}

ConfigError split_too_small(std::string_view spec, int64_t samples, std::string_view part) {
  return ConfigError("data " + in_quotes(spec) + ": a split of " + std::to_string(samples) +
                     " samples leaves none to " + std::string(part) +
                     " with; give a test set or another share");
}

ConfigError tokens_have_no_scale(std::string_view spec) {
  return ConfigError("data " + in_quotes(spec) +
                     ": tokens are indices, which have no mean: leave " + in_quotes("normalise") +
                     ", mean and std out");
}

ConfigError wrong_means(std::string_view spec, size_t found, int64_t channels) {
  return ConfigError("mean and std have " + std::to_string(found) + " numbers, the samples of " +
                     in_quotes(spec) + " have " + std::to_string(channels) + " channels");
}

IoError no_such_files(std::string_view folder, std::string_view wanted) {
  return IoError(at(folder) + "found no " + std::string(wanted));
}

ConfigError several_files(std::string_view folder, std::span<const std::string> found) {
  return ConfigError(at(folder) + "found " + list(found) +
                     "; which is meant? Add the beginning of their names to the folder: " +
                     std::string(folder) + "/emnist-letters");
}

ModelError no_samples(std::string_view file) { return ModelError(at(file) + "holds no sample"); }

ModelError too_long(std::string_view file, int64_t size, int64_t wanted) {
  return ModelError(at(file, wanted) + "the data end here, but the file has " +
                    std::to_string(size) + " bytes");
}

ModelError partial_record(std::string_view file, int64_t size, int64_t record) {
  const int64_t last = size - size % record;
  return ModelError(at(file, last) + "the record that begins here has " +
                    std::to_string(size - last) + " bytes, wanted " + std::to_string(record));
}

ModelError bad_label(std::string_view file, int64_t offset, int64_t label, int64_t classes) {
  return ModelError(at(file, offset) + "label " + std::to_string(label) + " is not in 0.." +
                    std::to_string(classes - 1));
}

ModelError bad_bytes(std::string_view file, int64_t offset, std::string_view found,
                     std::string_view wanted) {
  return ModelError(at(file, offset) + "found " + std::string(found) + ", wanted " +
                    std::string(wanted));
}

ModelError counts_differ(std::string_view values, int64_t samples, std::string_view labels,
                         int64_t label_count) {
  return ModelError(at(values) + std::to_string(samples) + " samples, but " +
                    std::to_string(label_count) + " labels in " + std::string(labels));
}

ModelError parts_differ(std::string_view spec, std::string_view train, std::string_view test) {
  return ModelError("data " + in_quotes(spec) + ": samples to test with are " + std::string(test) +
                    ", those to train with " + std::string(train));
}

ModelError damaged_gzip(std::string_view file, int64_t offset, std::string_view why) {
  return ModelError(at(file, offset) + "damaged gzip data: " + std::string(why));
}

ModelError not_finite(std::string_view file, int64_t offset) {
  return ModelError(at(file, offset) + "a value that is not finite");
}

ModelError no_classes(std::string_view folder) {
  return ModelError(at(folder) + "found no folder; wanted one for each class");
}

ModelError no_images(std::string_view folder) {
  return ModelError(at(folder) + "found no .jpg, .jpeg or .png");
}

ModelError unknown_class(std::string_view folder, std::string_view name,
                         std::span<const std::string> classes) {
  return ModelError(at(folder) + "class " + in_quotes(name) + " is not among those to train with." +
                    did_you_mean(name, classes));
}

ModelError sizes_differ(std::string_view file, const Shape& found, std::string_view first,
                        const Shape& wanted) {
  return ModelError(at(file) + "the image is " + to_string(found) + ", but " + std::string(first) +
                    " is " + to_string(wanted) + "; give a size, and they are resized");
}

}  // namespace parsimony::training::errors
