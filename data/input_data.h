// Samples of a network's inputs by name: data for networks of any kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

/// Arrays with a sample per index of their first axis, mapped from files, or random numbers:
///
///     npz:FILE  safetensors:FILE  npy:NAME=FILE,…     an array for every input, by its name
///     random:COUNT                                    as the inputs' types say
///     images:DIR  audio:DIR  text:FILE                samples of one input, see InputSource
///
/// An array of exactly an input's shape is the same for all samples; one with an axis in front of
/// that shape has an entry for every run. An array "labels" or "targets" of no input has the
/// samples' classes; one that is named like an output says what that should be, for losses.
class InputData {
 public:
  /// Is the text of one of these forms?
  static bool is_source(std::string_view source);

  /// `specs` are those of --input: their values stand in for arrays. `graph` must outlive it.
  /// @param image  what is done to pictures, see ImageSpec
  /// @throws ConfigError, naming the array, if an input has none, or one of no input is there, or
  /// shapes or lengths do not fit; IoError, ModelError, UnsupportedError for files
  InputData(const std::string& source, const Graph& graph, std::vector<InputSpec> specs,
            std::string_view image = {});
  ~InputData();
  InputData(InputData&&) noexcept;

  int64_t samples() const;
  bool labelled() const;
  /// Do the files have samples of this one of the graph's inputs?
  bool has(size_t input) const;

  /// The size of a run: `wanted`, unless the network or the arrays fix another.
  int64_t batch(int64_t wanted) const;

  /// The inputs of a run, in the graph's order and of its types; `count` is batch(), or less at the
  /// end where that is not fixed. @throws ModelError, naming the element, for what is no number
  TensorList inputs(int64_t first, int64_t count) const;
  std::vector<int64_t> labels(int64_t first, int64_t count) const;

  /// Do the files say what this one of the graph's outputs should be?
  bool has_target(size_t output) const;
  /// In the order of the graph's outputs, each [count, …]; one without a target has no dims.
  /// @throws ModelError, naming the element, for what is no number
  TensorList targets(int64_t first, int64_t count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parsimony
