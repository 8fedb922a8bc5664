// The data formats and their readers.
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

/// Samples of one input of a network, read on demand.
class InputSource {
 public:
  virtual ~InputSource() = default;

  virtual int64_t samples() const = 0;
  /// Test samples, whose numbers follow those of samples().
  virtual int64_t test_samples() const { return 0; }

  /// Returns samples [count, …] in their stored type; the range must be valid.
  virtual TensorBytes rows(int64_t first, int64_t count) const = 0;

  /// Returns the dims of one sample's labels; nothing where there are no labels.
  virtual std::optional<Shape> label_dims() const { return {}; }
  /// Returns labels [count, ..label_dims].
  virtual std::vector<int64_t> labels(int64_t /*first*/, int64_t /*count*/) const { return {}; }
};

/// A data format, with one reader, or two if labels are expensive. `place` is the part of the spec
/// after the colon.
struct Format {
  std::string_view name;  ///< the part before it
  std::string_view form;  ///< for messages and help: "cifar10:DIR"

  /// Fills name, classes, training and test set; read_dataset does the rest.
  Dataset (*labelled)(const std::string& place, const DatasetOptions& options) = nullptr;
  /// @param input  the network's input, which determines the shape unless the place does
  /// @param image  what is done to pictures, see ImageSpec
  std::unique_ptr<InputSource> (*input)(const std::string& place, const Value& input,
                                        std::string_view image) = nullptr;
  void (ArrayFiles::*arrays)(const std::string& place) = nullptr;

  std::string_view mark = {};  ///< distinguishes places of formats that share a name
  bool bare = false;           ///< the name alone is a spec
  bool drawn = false;          ///< random values of the inputs' types

  bool has_labels() const { return labelled != nullptr || arrays != nullptr; }
};

/// A format and the part of the spec after the colon.
struct DataSpec {
  const Format* format = nullptr;
  std::string place;
};

/// Parses a spec; files with the extension of an array format need no prefix. @param labelled  for
/// training. @throws ConfigError for unknown names, or without a place
DataSpec parse_data_spec(std::string_view spec, bool labelled);
/// Parses a spec; returns nothing for unknown names.
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

/// Opens all pictures below a folder, in the same order in each run.
std::unique_ptr<InputSource> open_images(const std::string& place, const Value& input,
                                         std::string_view image);
/// Opens files that libsndfile reads, a folder or one file, as consecutive windows with the length
/// of the input's last axis: float32 in -1..1, channels averaged.
std::unique_ptr<InputSource> open_audio(const std::string& place, const Value& input,
                                        std::string_view image);
/// Opens a file's bytes as integers 0..255 in consecutive windows; their length is that of the
/// place, else of the input's last axis.
std::unique_ptr<InputSource> open_text(const std::string& place, const Value& input,
                                       std::string_view image);

/// Reads a data set from an array of samples and an array of labels.
Dataset read_labelled_arrays(const std::string& spec, const DatasetOptions& options);

/// Opens training and test set as inputs of a network.
std::unique_ptr<InputSource> open_dataset(std::shared_ptr<const Dataset> data);

/// Returns names for `count` unnamed classes: "0", "1", ….
std::vector<std::string> numbers_from(int64_t first, int64_t count);

/// Keeps the first `limit` samples.
void keep_first(Samples& samples, std::optional<int64_t> limit);

/// Returns the size of the test set split off `count` samples.
/// @throws ConfigError if either part would be empty
int64_t test_part_of(int64_t count, const DatasetOptions& options, const std::string& spec);

/// Returns the shape of one sample of an input: all axes behind the first are 1, except for the
/// last, which has the given length where the input leaves it open.
/// @param option  says how long a window is, for the message. @throws ConfigError
Shape window_of(const Value& input, std::optional<int64_t> length, std::string_view option);

/// Returns [count, ..window], to be filled.
TensorBytes empty_rows(DType dtype, const Shape& window, int64_t count);

/// The file has fewer elements than one window.
ConfigError too_short(std::string_view file, int64_t found, int64_t expected);

}  // namespace parsimony
