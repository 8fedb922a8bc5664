// The contents of a ModelFile.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <deque>
#include <future>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/slice.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/external_data.h"
#include "parsimony/onnx_io/file_impl.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/model_index_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/smallest_impl.h"

namespace parsimony::onnx_io {

/// Pending edits of an external tensor, applied when it is written. Indices refer to the file.
struct ExternalEdit {
  ExternalData::Range source;
  Shape dims;                  ///< as in the file
  std::vector<AxisKeep> axes;  ///< each axis once
  std::optional<SmallestElements> zeros;
  ChangeRows change;  ///< of the remaining elements, last; may be empty
};

struct ModelFile::Impl {
  explicit Impl(const std::string& model_path);

  std::string path;
  OpenFile source;
  onnx::ModelProto model;
  ExternalData external;
  bool edited = false;
  std::unordered_map<const onnx::TensorProto*, ExternalEdit> external_edits;
  std::deque<std::vector<std::byte>> edited_bytes;  ///< referenced by graphs of the edited model
  std::unordered_map<std::string, std::string> copies;  ///< name of a copy -> of what
  std::unique_ptr<ModelIndex> index;                    ///< null until the first edit
  std::deque<onnx::NodeProto> substituted;   ///< of functions, with the attributes of a call
  Scalars scalars;                           ///< of Constant nodes with value_int or value_float
  std::shared_future<std::string> checksum;  ///< last: reads `source` in a thread of its own
};

/// Passes the kept elements, in order and in runs, to `run`; see for_each_run. Pages are released
/// after use.
void for_each_kept_run(const ExternalEdit& edit, int64_t element_bytes,
                       const ExternalData& external, const RunSink& run);

/// The remaining bytes of an external tensor, with its zeros and changes.
std::vector<std::byte> edited(const ExternalEdit& edit, DType dtype, const ExternalData& external);
/// The same for some of the kept indices of the first axis.
std::vector<std::byte> edited_rows(const ExternalEdit& edit, DType dtype,
                                   const ExternalData& external, int64_t first, int64_t count);

/// Writes the model in `impl` to `path`, with its external data beside it. @returns the bytes of
/// both
int64_t write_edited(ModelFile::Impl& impl, const std::string& path);

/// Copies the model and its external files unchanged. @returns the bytes of all; nothing, without
/// writing anything, if that would overwrite another file
std::optional<int64_t> copy_unedited(ModelFile::Impl& impl, const std::string& path);

}  // namespace parsimony::onnx_io
