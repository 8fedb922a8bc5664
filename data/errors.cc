#include "parsimony/data/errors.h"

namespace parsimony::errors {

ConfigError array_of_other_shape(std::string_view array, std::string_view found,
                                 std::string_view expected) {
  return ConfigError("array ", in_quotes(array), " has shape ", found, ", the input expects ",
                     expected, " (-1 is any size)");
}

IoError cannot_list(std::string_view folder, std::string_view why) {
  return IoError("cannot list ", in_quotes(folder), ": ", why);
}

ConfigError no_files_below(std::string_view folder, std::string_view endings) {
  return ConfigError(folder, ": found no ", endings, " in or below it");
}

ModelError damaged_image(std::string_view file, int64_t offset, std::string_view why) {
  return ModelError(file, ": byte ", offset, ": damaged image: ", why);
}

ConfigError bad_image_spec(std::string_view word) {
  return ConfigError(
      "--image ", in_quotes(word),
      ": expected resize=N or HxW, crop=N or HxW, letterbox or letterbox=PAD (without "
      "crop and resize=N), rgb, bgr or grey, nchw or nhwc, scale=S, mean=A/B/C, "
      "std=A/B/C with one number or one per channel");
}

ConfigError bad_spec(std::string_view spec, std::string_view expected) {
  return ConfigError("data ", in_quotes(spec), ": expected ", expected);
}

ModelError no_samples(std::string_view file) { return ModelError(file, ": contains no samples"); }

ModelError too_long(std::string_view file, int64_t size, int64_t expected) {
  return ModelError(file, ": byte ", expected, ": the data end here, but the file has ", size,
                    " bytes");
}

ModelError bad_label(std::string_view file, int64_t offset, int64_t label, int64_t classes) {
  return ModelError(file, ": byte ", offset, ": label ", label, " is not in 0..", classes - 1);
}

ModelError counts_differ(std::string_view values, int64_t samples, std::string_view labels,
                         int64_t label_count) {
  return ModelError(values, ": ", samples, " samples, but ", label_count, " labels in ", labels);
}

}  // namespace parsimony::errors
