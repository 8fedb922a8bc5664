// What a front end must be able to change in the original model. A Plan is replayed through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/axis_keep.h"
#include "parsimony/graph/host_tensor.h"

namespace parsimony {

/// What a value's shape was and has become.
struct ShapeChange {
  Shape before;
  Shape after;
};

/// Edits one model in place. Nodes are named by their first non-empty output, tensors as the user
/// knows them. Every call throws ModelError if what it names is not there or does not fit.
class ModelEditor {
 public:
  virtual ~ModelEditor() = default;

  /// What reads the node's output reads its operand `input` instead. The node goes, and so does all
  /// that nothing reads then: nodes before it and their constants.
  /// @throws UnsupportedError if this kind of model cannot lose nodes, or its output is the model's
  virtual void bypass(const std::string& node, int input);

  /// Adds tensor `name`, equal to `of`, and makes input `input` of `consumer` read it.
  virtual void copy(const std::string& name, const std::string& of, const std::string& consumer,
                    int input) = 0;

  /// Keeps the named indices of each axis; axes not named stay whole.
  virtual void slice(const std::string& tensor, std::span<const AxisKeep> axes) = 0;

  /// Sets to zero the `count` elements of smallest magnitude; ties fall to the lower index.
  virtual void zero_smallest(const std::string& tensor, int64_t count) = 0;

  /// Gives a tensor new elements: `values` are of its type, little-endian, row-major, as many as
  /// its dims, as cut so far, need.
  virtual void assign(const std::string& tensor, std::span<const std::byte> values) = 0;

  /// Replaces an integer attribute, keeping its form (one integer or a list); an absent one is
  /// added as one integer if there is one value, else as a list. No values: the attribute goes.
  virtual void set_attribute(const std::string& node, const std::string& attribute,
                             std::span<const int64_t> values) = 0;

  /// Replaces an attribute that is one floating point number, or adds it. By default there is none
  /// that could be replaced: formats that are not ONNX keep such numbers elsewhere.
  virtual void set_number(const std::string& node, const std::string& attribute, double value);

  /// Makes input `input` of `node` read a fresh constant.
  virtual void set_input(const std::string& node, int input, const HostTensor& constant) = 0;

  /// Brings the shapes that the model declares for its values up to date. `change` is asked for
  /// each declared name; sizes that did not change, and symbolic ones, stay as they are.
  using ChangeOf = std::function<std::optional<ShapeChange>(std::string_view name)>;
  virtual void update_shapes(const ChangeOf& change) { (void)change; }
};

}  // namespace parsimony
