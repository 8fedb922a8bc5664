// Inputs of a network, from data of any format.
#pragma once

#include <atomic>
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

/// Samples of a network's inputs, with labels or targets if available. Files are mapped, pictures,
/// audio and text are read on demand, data sets are in memory. docs/guide/data.md describes the
/// formats:
///
///     npz:FILE  safetensors:FILE  npy:NAME=FILE,…     an array for every input, by its name
///     random:COUNT                                    random values of the inputs' types
///     images:DIR  audio:DIR  text:FILE                samples of one input
///     cifar10:DIR  folder:DIR  …                      likewise, with labels and a test part
///
/// An array of exactly an input's shape is the same for all samples; one with an additional leading
/// axis has an entry for every run. An array "labels" or "targets" that is not an input has the
/// samples' classes; an array named like an output is its target, for losses.
class SampleSource {
 public:
  /// `graph` must outlive it.
  /// @throws ConfigError for an unknown format; naming the array, if an input has none, an array
  /// belongs to no input, or shapes or lengths do not fit; IoError, ModelError, UnsupportedError
  /// for files
  SampleSource(const std::string& spec, const Graph& graph, SampleOptions options = {});
  ~SampleSource();
  SampleSource(SampleSource&&) noexcept;

  int64_t samples() const;
  /// The number of samples in the test part, which are numbered behind the others; 0 without one.
  int64_t test_samples() const;
  /// Returns whether the files have samples of this input of the graph.
  bool has(size_t input) const;

  /// Returns the size of a run: `requested`, unless the network or the arrays fix it.
  int64_t batch(int64_t requested) const;

  /// Returns the inputs of a run in the graph's order and types; `count` is batch(), or less at the
  /// end unless that is fixed. @throws ModelError, naming the element, for non-finite values
  TensorList inputs(int64_t first, int64_t count) const;

  /// Returns the number of values in one sample's inputs.
  int64_t values() const;

  bool labelled() const;
  /// Returns the dims of one sample's labels; empty for a single label.
  Shape label_dims() const;
  /// Returns labels [count, ..label_dims].
  std::vector<int64_t> labels(int64_t first, int64_t count) const;

  /// Returns whether the files have targets for this output of the graph.
  bool has_target(size_t output) const;
  /// Returns targets [count, …] in the order of the graph's outputs; without a target, dims are
  /// empty. @throws ModelError, naming the element, for non-finite values
  TensorList targets(int64_t first, int64_t count) const;

  /// Returns a hash that identifies the samples: a data set's own, else a hash of the first run.
  std::string fingerprint() const;

  /// Returns training and test set for training; null for data without classes.
  const std::shared_ptr<const Dataset>& dataset() const;

 private:
  int64_t first_run() const;  ///< samples: a run, or as many as there are

  struct State;
  std::unique_ptr<State> state_;
};

/// How many samples all sources of the process have handed out since it began: in a pass over data
/// each once, and the first few more often, where something about them is looked up.
std::atomic<int64_t>& samples_read();
/// From now on samples are counted there, for a library that is loaded with a copy of this one.
void count_samples_in(std::atomic<int64_t>& counter);

}  // namespace parsimony
