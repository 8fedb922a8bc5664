// The formats of data, and the readers that their table names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"
#include "parsimony/data/arrays.h"
#include "parsimony/data/dataset.h"
#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// Samples of one input of a network, read when they are needed.
class InputSource {
 public:
  virtual ~InputSource() = default;

  virtual int64_t samples() const = 0;
  /// Behind these, to test on: numbered on.
  virtual int64_t test_samples() const { return 0; }

  /// [count, …], of the type in which they are kept. The bounds must hold.
  virtual TensorBytes rows(int64_t first, int64_t count) const = 0;

  /// Returns the dims of one sample's labels; nothing where there are no labels.
  virtual std::optional<Shape> label_dims() const { return {}; }
  /// [count, ..label_dims]
  virtual std::vector<int64_t> labels(int64_t /*first*/, int64_t /*count*/) const { return {}; }
};

/// A row has one reader, or two where labels cost something. `place` is what stands behind the
/// colon of the spec.
struct Format {
  std::string_view name;  ///< what stands before it
  std::string_view form;  ///< for messages and help: "cifar10:DIR"

  /// Fills name, classes and the two parts; read_dataset does the rest.
  Dataset (*labelled)(const std::string& place, const DatasetOptions& options) = nullptr;
  /// @param input  what takes the samples: says their shape where the place does not
  /// @param image  what is done to pictures, see ImageSpec
  std::unique_ptr<InputSource> (*input)(const std::string& place, const Value& input,
                                        std::string_view image) = nullptr;
  void (ArrayFiles::*arrays)(const std::string& place) = nullptr;

  std::string_view mark = {};  ///< in every place of it, where two formats share the name
  bool bare = false;           ///< the name alone is a spec
  bool drawn = false;          ///< random numbers, as the inputs' types say

  bool has_labels() const { return labelled != nullptr || arrays != nullptr; }
};

/// A format and what stands behind the colon.
struct DataSpec {
  const Format* format = nullptr;
  std::string place;
};

/// Files that end as a format of arrays is named need no prefix.
/// @param labelled  to train with. @throws ConfigError for unknown names, or without a place
DataSpec parse_data_spec(std::string_view spec, bool labelled);
/// Nothing for unknown names.
std::optional<DataSpec> find_data_spec(std::string_view spec);

/// "npy:NAME=FILE,…, npz:FILE or safetensors:FILE"
std::string array_forms();

Dataset read_cifar10(const std::string& place, const DatasetOptions& options);
Dataset read_cifar100(const std::string& place, const DatasetOptions& options);
Dataset read_idx(const std::string& place, const DatasetOptions& options);
Dataset read_folder(const std::string& place, const DatasetOptions& options);
Dataset read_npy(const std::string& place, const DatasetOptions& options);
Dataset draw_shapes(const std::string& counts, const DatasetOptions& options);
Dataset read_text(const std::string& place, const DatasetOptions& options);

/// A folder of pictures; all below it, the same ones in the same order in each run.
std::unique_ptr<InputSource> open_images(const std::string& place, const Value& input,
                                         std::string_view image);
/// A folder of files that libsndfile reads, or one of them: windows as long as the last axis of the
/// input, one after the other, float32 in -1..1, channels averaged.
std::unique_ptr<InputSource> open_audio(const std::string& place, const Value& input,
                                        std::string_view image);
/// A file's bytes as numbers 0..255: windows one after the other; their length is that of the
/// place, else of the last axis of the input.
std::unique_ptr<InputSource> open_text(const std::string& place, const Value& input,
                                       std::string_view image);

/// Reads a data set from an array of samples and an array of labels.
Dataset read_labelled_arrays(const std::string& spec, const DatasetOptions& options);

/// Both parts as a network takes them.
std::unique_ptr<InputSource> open_dataset(std::shared_ptr<const Dataset> data);

/// Names of `count` classes that have none: "0", "1", ….
std::vector<std::string> numbers_from(int64_t first, int64_t count);

/// Keeps the first `limit` samples.
void keep_first(Samples& samples, std::optional<int64_t> limit);

/// Size of the test set split off `count` samples if there is none.
/// @throws ConfigError if either part would be empty
int64_t test_part_of(int64_t count, const DatasetOptions& options, const std::string& spec);

/// Returns the shape of one sample of an input: all axes behind the first are 1, except for the
/// last, which has the given length where the input leaves it open.
/// @param option  says how long a window is, for the message. @throws ConfigError
Shape window_of(const Value& input, std::optional<int64_t> length, std::string_view option);

/// [count, ..window], to be filled.
TensorBytes empty_rows(DType dtype, const Shape& window, int64_t count);

/// A file of fewer elements than one window has.
ConfigError too_short(std::string_view file, int64_t found, int64_t expected);

}  // namespace parsimony
