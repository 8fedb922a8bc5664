// Edits an ONNX model in place: everything else is preserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/types.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::onnx_io {

/// Changes the values of some rows of a tensor, which are slices along its first axis; of all if
/// `rows` is empty.
using ChangeRows = std::function<void(std::span<std::byte> values, std::span<const int64_t> rows)>;

/// A tensor keeps its storage: raw bytes, a typed field, a Constant node's attribute, an external
/// file. External tensors are not read until the model is written. Constants, and Identity nodes of
/// them, without readers are removed when the model is written. Views of an edited tensor in a
/// Graph that was read before become invalid.
class OnnxEditor : public ModelEditor {
 public:
  /// `file` must outlive the editor.
  explicit OnnxEditor(ModelFile& file);

  /// Removes nodes immediately, their constants when the model is written.
  void bypass(std::span<const BypassedNode> nodes) override;

  /// Copies the current values of `of`: copies come before slices.
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;

  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;

  /// Replaces the values; an external tensor moves into the model file.
  void assign(const std::string& tensor, std::span<const std::byte> values) override;

  /// Changes values after all other edits of the tensor. An external tensor stays external, and is
  /// changed when it is written, a few megabytes at a time.
  void change(const std::string& tensor, const ChangeRows& change);

  /// Sets an attribute, which is added if the file omits it.
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;

  void set_number(const std::string& node, const std::string& attribute, double value) override;

  /// Sets an input, which is appended if needed, with absent inputs in between.
  void set_input(const std::string& node, int input, const HostTensor& constant) override;

  /// Updates the declared shapes of graph outputs and intermediate values; `slice` does so for
  /// initializers. `change` is called for each declared name; symbolic dimensions and unchanged
  /// sizes are kept.
  void update_shapes(const ChangeOf& change) override;

 private:
  ModelFile::Impl& impl_;
};

}  // namespace parsimony::onnx_io
