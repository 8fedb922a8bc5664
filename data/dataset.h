// Labelled samples in memory, and their specs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// The label of elements that losses and accuracies ignore, as in PyTorch.
inline constexpr int64_t kNoLabel = -100;

/// Samples of one shape and type, with a label for each sample or each of its elements.
struct Samples {
  Shape dims;                     ///< of one sample; images are [c, h, w]
  DType dtype = DType::kUInt8;    ///< kUInt8 or kFloat32
  std::vector<std::byte> values;  ///< [count, ..dims], row-major, in the machine's byte order
  /// 0 … classes - 1, or kNoLabel; [count, ..label_dims].
  std::vector<int64_t> labels;
  Shape label_dims = {};  ///< of one sample; empty: a single label

  int64_t count() const;
  /// Returns the bytes of one sample.
  int64_t stride() const;
};

/// Training and test data. The network's input is (value · scale - mean) / deviation.
struct Dataset {
  std::string name;  ///< the spec's: "cifar10", "folder"
  std::vector<std::string> classes;
  Samples train;
  Samples test;
  double scale = 1;               ///< 1/255 for uint8, 1 for float32
  std::vector<double> mean;       ///< per channel, of the scaled values; empty: not normalised
  std::vector<double> deviation;  ///< per channel, as many as `mean`
  bool tokens = false;            ///< values are indices: inputs are int64, and not scaled
  std::string fingerprint;        ///< SHA-256 of both parts' dims, types, values and labels
  std::string note = {};          ///< on what the spec leaves open, for users; may be empty
};

struct DatasetOptions {
  uint64_t seed = 0;                          ///< of generated data (`shapes`) and splits
  std::optional<int64_t> train_samples = {};  ///< at most; the first ones
  std::optional<int64_t> test_samples = {};
  std::optional<int64_t> size = {};  ///< folder: images become [3, size, size]
  /// Fraction of the samples that become the test set if there is none, drawn by seed.
  double test_share = 0.2;
  std::optional<int64_t> ignore = {};  ///< npy: a label that becomes kNoLabel, as -100 does
  bool normalise = false;              ///< measure `mean` and `deviation` on the training set
  std::vector<double> mean = {};       ///< of the Dataset, in place of measured ones
  std::vector<double> deviation = {};  ///< as many as `mean`
  int threads = 0;                     ///< for decoding and drawing; 0: one per core
};

/// The normalisation of inputs, value · factor + offset per channel.
struct ChannelScale {
  std::vector<float> factors;
  std::vector<float> offsets;

  /// The parameters correspond to the members of Dataset.
  ChannelScale(int64_t channels, double scale, const std::vector<double>& mean,
               const std::vector<double>& deviation);
};

/// Reads the data set `spec` into memory; docs/guide/data.md describes each layout.
///
///     cifar10:DIR cifar100:DIR     binary layout: data_batch_1.bin …, train.bin …
///     mnist:DIR                    idx layout, also .gz; Fashion-MNIST, KMNIST, EMNIST
///     folder:DIR                   DIR/train/CLASS/*.jpg|png, DIR/test/CLASS/…
///     npy:X,Y[,XTEST,YTEST]        NumPy arrays
///     npz:FILE safetensors:FILE npy:NAME=FILE,…   an array of samples, and "labels"
///     shapes[:TRAIN,TEST]          generated from the seed alone
///     text:FILE[,length=N]         windows of bytes; the label of each byte is the next one
///
///     Dataset data = read_dataset("shapes", {.seed = 1});
///
/// @throws ConfigError for an invalid spec or option; IoError for a file that cannot be read;
/// ModelError, naming file and byte, for a malformed file; UnsupportedError for an array of an
/// unsupported type or order
Dataset read_dataset(std::string_view spec, const DatasetOptions& options = {});

/// Returns the names of data sets, in alphabetical order. @param labelled  only those with labels,
/// for training
std::vector<std::string> data_names(bool labelled);

/// Returns the forms of their specs: "cifar10:DIR, cifar100:DIR, …".
std::string data_forms(bool labelled);

}  // namespace parsimony
