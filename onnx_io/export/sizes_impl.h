// What is known of a network's sizes when it is exported: with the batch open, what two batches
// agree in.
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
  /// @throws UnsupportedError if the batch is to be open and the graph takes no other
  Sizes(const Graph& graph, const std::vector<InputSpec>& inputs, bool open_batch);

  const Facts& facts() const { return facts_; }
  bool open_batch() const { return other_.has_value(); }
  /// The elements, if they follow from the sizes alone and are the same for every batch; else null.
  const HostTensor* constant(ValueId value) const;
  /// A number whose value was given: the network was read for it, and it is no input any more.
  bool fixed_input(ValueId value) const;
  /// Sizes with -1 for those that are open, and their names. Nothing if the rank is not known.
  std::pair<Shape, std::vector<std::string>> declared(ValueId value) const;

 private:
  const Graph& graph_;
  std::vector<InputSpec> inputs_;
  Facts facts_;
  std::optional<Facts> other_;  ///< for another batch
};

}  // namespace parsimony::onnx_io
