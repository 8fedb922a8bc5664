// Samples as a network takes them, from data of any format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/data/dataset.h"
#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

struct SampleOptions {
  std::vector<InputSpec> inputs = {};  ///< of --input: their values stand in for samples
  std::string image = {};              ///< what is done to pictures, see ImageSpec
  /// Options for data sets with classes, which read_dataset() reads. If no size is given, pictures
  /// of a folder get the size of the input.
  DatasetOptions labelled = {};
};

/// Samples of a network's inputs, and what is known of its outputs. Files are mapped, and pictures,
/// sound and text read when they are needed; data sets are in memory. docs/guide/data.md describes
/// the formats:
///
///     npz:FILE  safetensors:FILE  npy:NAME=FILE,…     an array for every input, by its name
///     random:COUNT                                    as the inputs' types say
///     images:DIR  audio:DIR  text:FILE                samples of one input
///     cifar10:DIR  folder:DIR  …                      likewise, with labels and a test part
///
/// An array of exactly an input's shape is the same for all samples; one with an axis in front of
/// that shape has an entry for every run. An array "labels" or "targets" of no input has the
/// samples' classes; one that is named like an output says what that should be, for losses.
class SampleSource {
 public:
  /// `graph` must outlive it.
  /// @throws ConfigError for an unknown format; naming the array, if an input has none, or one of
  /// no input is there, or shapes or lengths do not fit; IoError, ModelError, UnsupportedError for
  /// files
  SampleSource(const std::string& spec, const Graph& graph, SampleOptions options = {});
  ~SampleSource();
  SampleSource(SampleSource&&) noexcept;

  int64_t samples() const;
  /// The number of samples in the test part, which are numbered behind the others; 0 without one.
  int64_t test_samples() const;
  /// Do the files have samples of this one of the graph's inputs?
  bool has(size_t input) const;

  /// The size of a run: `requested`, unless the network or the arrays fix another.
  int64_t batch(int64_t requested) const;

  /// The inputs of a run, in the graph's order and of its types; `count` is batch(), or less at the
  /// end where that is not fixed. @throws ModelError, naming the element, for what is no number
  TensorList inputs(int64_t first, int64_t count) const;

  bool labelled() const;
  /// Returns the dims of one sample's labels; empty for a single label.
  Shape label_dims() const;
  /// [count, ..label_dims]
  std::vector<int64_t> labels(int64_t first, int64_t count) const;

  /// Do the files say what this one of the graph's outputs should be?
  bool has_target(size_t output) const;
  /// In the order of the graph's outputs, each [count, …]; one without a target has no dims.
  /// @throws ModelError, naming the element, for what is no number
  TensorList targets(int64_t first, int64_t count) const;

  /// Returns a hash that identifies the samples: a data set's own, else a hash of the first run.
  std::string fingerprint() const;

  /// Both parts as they are stored, to train with; null for data without classes.
  const std::shared_ptr<const Dataset>& dataset() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parsimony
