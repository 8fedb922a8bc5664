// The known sizes of a network during export: with a dynamic batch, those in which two batches
// agree.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"

namespace parsimony::onnx_io {

class Sizes {
 public:
  /// @throws UnsupportedError if the batch is dynamic and the graph accepts no other size
  Sizes(const Graph& graph, const std::vector<InputSpec>& inputs, bool open_batch);

  const Facts& facts() const { return facts_; }
  bool open_batch() const { return other_.has_value(); }
  /// The elements, if they follow from the sizes alone and are the same for every batch; else null.
  const HostTensor* constant(ValueId value) const;
  /// A number whose value was given: the network was specialised for it, so it is no longer an
  /// input.
  bool fixed_input(ValueId value) const;
  /// Sizes, with -1 for symbolic ones, and their names. Empty if the rank is unknown.
  std::pair<Shape, std::vector<std::string>> declared(ValueId value) const;

 private:
  const Graph& graph_;
  std::vector<InputSpec> inputs_;
  Facts facts_;
  std::optional<Facts> other_;  ///< for another batch
};

}  // namespace parsimony::onnx_io
