// What a ModelFile holds.
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
#include "parsimony/onnx_io/external_data.h"
#include "parsimony/onnx_io/file_impl.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/model_index_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/smallest_impl.h"

namespace parsimony::onnx_io {

/// What is to be done to an external tensor when it is written. Indices count as in the file.
struct ExternalEdit {
  ExternalData::Range source;
  Shape dims;                  ///< as in the file
  std::vector<AxisKeep> axes;  ///< each axis once
  std::optional<SmallestElements> zeros;
};

struct ModelFile::Impl {
  explicit Impl(const std::string& model_path);

  std::string path;
  OpenFile source;
  onnx::ModelProto model;
  ExternalData external;
  bool edited = false;
  std::unordered_map<const onnx::TensorProto*, ExternalEdit> external_edits;
  std::deque<std::vector<std::byte>> edited_bytes;  ///< what a graph of the edited model points to
  std::unordered_map<std::string, std::string> copies;  ///< name of a copy -> of what
  std::unique_ptr<ModelIndex> index;                    ///< null until the first edit
  std::deque<onnx::NodeProto> substituted;   ///< of functions, with the attributes of a call
  Scalars scalars;                           ///< of Constant nodes with value_int or value_float
  std::shared_future<std::string> checksum;  ///< last: reads `source` in a thread of its own
};

/// Hands the elements that stay, in order and in runs, to `run`; see for_each_run. Memory does not
/// stay resident behind it.
void for_each_kept_run(const ExternalEdit& edit, int64_t element_bytes,
                       const ExternalData& external, const RunSink& run);

/// The bytes that stay of an external tensor, with its zeros.
std::vector<std::byte> edited(const ExternalEdit& edit, DType dtype, const ExternalData& external);
/// The same of some of the indices of the first axis that stay.
std::vector<std::byte> edited_rows(const ExternalEdit& edit, DType dtype,
                                   const ExternalData& external, int64_t first, int64_t count);

/// Writes what is in `impl` to `path`, with external data beside it where there is some.
void write_edited(ModelFile::Impl& impl, const std::string& path);

/// Copies the model and its external files as they are. False, and nothing written, if that would
/// overwrite some other file.
bool copy_unedited(ModelFile::Impl& impl, const std::string& path);

}  // namespace parsimony::onnx_io
