// Changes an ONNX model in place: whatever is not named stays as it was.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/types.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/onnx_io/model_file.h"

namespace parsimony::onnx_io {

/// A tensor keeps the form in which the file stores it: raw bytes, a typed field, a Constant node's
/// attribute, an external file. External tensors are not touched until the model is written.
/// A constant, or an Identity of one, that loses its last reader is removed when the model is
/// written. Views of an edited tensor, in a Graph read before, are no longer valid.
class OnnxEditor : public ModelEditor {
 public:
  /// `file` must outlive the editor.
  explicit OnnxEditor(ModelFile& file);

  /// Nodes leave at once, their constants when the model is written.
  void bypass(const std::string& node, int input) override;

  /// Takes the values that `of` has now: copies come before slices.
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;

  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;

  /// An external tensor moves into the model file.
  void assign(const std::string& tensor, std::span<const std::byte> values) override;

  /// An attribute that the file leaves at its default is added.
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;

  void set_number(const std::string& node, const std::string& attribute, double value) override;

  /// An input beyond those that the node has is appended, with absent ones between.
  void set_input(const std::string& node, int input, const HostTensor& constant) override;

  /// Brings the shapes that the file declares for graph outputs and inner values up to
  /// date; `slice` does so for initializers. `change` is asked for each declared name; dimensions
  /// whose size did not change, and symbolic ones, stay as they are.
  void update_shapes(const ChangeOf& change) override;

 private:
  ModelFile::Impl& impl_;
};

}  // namespace parsimony::onnx_io
