#include "parsimony/onnx_io/model_file.h"

#include <absl/container/flat_hash_map.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/hash.h"
#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/embedded_impl.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Returns the tensor of a Constant node; null for other nodes.
const onnx::TensorProto* constant_of(const onnx::NodeProto& node) {
  if (!is_standard(node, "Constant") || node.output_size() != 1) return nullptr;
  const int at = value_attribute(node);
  return at >= 0 && node.attribute(at).has_t() ? &node.attribute(at).t() : nullptr;
}

bool equal_tensors(const onnx::TensorProto& a, const onnx::TensorProto& b, ExternalData& files) {
  onnx::TensorProto unnamed_a = with_elements(a, files);
  onnx::TensorProto unnamed_b = with_elements(b, files);
  for (onnx::TensorProto* tensor : {&unnamed_a, &unnamed_b}) {
    tensor->clear_name();
    tensor->clear_doc_string();
  }
  return unnamed_a.SerializeAsString() == unnamed_b.SerializeAsString();
}

/// The constants defined so far, by name.
class Constants {
 public:
  explicit Constants(ExternalData& files) : files_(files) {}

  /// Returns whether an equal constant of this name is defined already.
  bool repeats(std::string_view name, const onnx::TensorProto& tensor) {
    const auto [known, is_new] = known_.try_emplace(name, &tensor);
    return !is_new && equal_tensors(*known->second, tensor, files_);
  }

 private:
  ExternalData& files_;
  absl::flat_hash_map<std::string_view, const onnx::TensorProto*> known_;
};

/// Keeps one of several equal initializers and Constant nodes of a name, as ONNX Runtime does, also
/// in bodies.
void drop_duplicates(onnx::GraphProto& graph, ExternalData& files) {
  Constants constants(files);
  auto& tensors = *graph.mutable_initializer();
  auto& nodes = *graph.mutable_node();
  // Kept constants are never moved: the table refers to them.
  std::vector<int> repeated;
  for (int i = 0; i < tensors.size(); ++i) {
    if (constants.repeats(tensors[i].name(), tensors[i])) repeated.push_back(i);
  }
  std::vector<int> repeating;
  for (int i = 0; i < nodes.size(); ++i) {
    const onnx::TensorProto* tensor = constant_of(nodes[i]);
    if (tensor != nullptr && constants.repeats(nodes[i].output(0), *tensor)) repeating.push_back(i);
  }
  for (auto i = repeated.rbegin(); i != repeated.rend(); ++i) tensors.DeleteSubrange(*i, 1);
  for (auto i = repeating.rbegin(); i != repeating.rend(); ++i) nodes.DeleteSubrange(*i, 1);
  for (onnx::NodeProto& node : nodes) {
    for_each_body(
        node, [&](const std::string&, onnx::GraphProto& body) { drop_duplicates(body, files); });
  }
}

constexpr int kReadBlock = 1 << 18;

/// No file may name our own location. @throws ModelError
void check_embedded(const std::string& path, onnx::ModelProto& model, int expected) {
  for_each_tensor(model, [&](const onnx::TensorProto& tensor) { expected -= is_embedded(tensor); });
  if (expected != 0) {
    throw errors::bad_model(path, "a tensor's external data location is not a file name");
  }
}

/// Large elements stay in the file. @throws ModelError
void parse(const MappedFile& file, const std::string& path, onnx::ModelProto& model) {
  const std::string_view bytes = file.bytes();
  if (bytes.empty()) throw errors::bad_model(path, "not an ONNX model");
  if (std::cmp_greater(bytes.size(), std::numeric_limits<int32_t>::max())) {
    throw errors::too_large(path, std::ssize(bytes));
  }
  const std::optional<Reduced> reduced = without_elements(bytes);
  if (reduced && model.ParseFromString(reduced->message)) {
    return check_embedded(path, model, reduced->embedded);
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()),
                                                kReadBlock);
  const bool good = model.ParseFromZeroCopyStream(&stream);
  file.release(bytes);
  if (good) return check_embedded(path, model, 0);
  // A model begins with its version and producer; otherwise it is not a model.
  if (model.ir_version() > 0 && model.has_graph()) {
    throw ModelError(path, ": truncated or damaged: reading stopped at byte ", stream.ByteCount(),
                     " of ", bytes.size());
  }
  throw errors::bad_model(path, "not an ONNX model");
}

int64_t opset_of(const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") return import.version();
  }
  return 0;
}

void check_versions(const std::string& path, const onnx::ModelProto& model) {
  const int64_t ir = model.ir_version();
  if (ir < kLowestIrVersion || ir > kHighestIrVersion) {
    throw UnsupportedError(path, ": IR version ", ir, ": expected ", kLowestIrVersion, " to ",
                           kHighestIrVersion, "; export the model with another version");
  }
  if (model.opset_import().empty()) {
    throw errors::bad_model(
        path,
        "the model does not say which opset it uses (opset_import); the file may "
        "be truncated");
  }
  const int64_t opset = opset_of(model);
  if (opset != 0 && (opset < kLowestOpset || opset > kHighestOpset)) {
    throw UnsupportedError(path, ": opset ", opset, ": expected ", kLowestOpset, " to ",
                           kHighestOpset,
                           "; convert the model with onnx.version_converter or export it again");
  }
}

}  // namespace

ModelFile::Impl::Impl(const std::string& model_path)
    : path(model_path), external(model_path), source(external.map_own()) {
  checksum = std::async(std::launch::async, [this] { return parsimony::sha256(source); });
  parse(source, path, model);
  if (!model.has_graph()) throw errors::bad_model(path, "not an ONNX model: it has no graph");
  check_versions(path, model);
  drop_duplicates(*model.mutable_graph(), external);
  if (model.graph().node().empty())
    throw errors::bad_model(path, "the graph is empty: it has no nodes");
  if (model.graph().output().empty())
    throw errors::bad_model(path, "the graph has no outputs: it computes nothing");
}

ModelFile::ModelFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
ModelFile::~ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;

const std::string& ModelFile::path() const { return impl_->path; }

std::string ModelFile::sha256() const { return impl_->checksum.get(); }

int ModelFile::opset() const { return static_cast<int>(opset_of(impl_->model)); }

bool ModelFile::has_data_beside() const { return !impl_->external.files().empty(); }

bool ModelFile::is_mapped(const Weight& weight) const {
  return weight.data == nullptr || impl_->external.holds(weight.data);
}

bool ModelFile::edited() const { return impl_->edited; }

std::vector<std::string> ModelFile::data_files() const {
  std::vector<std::string> paths;
  for (const ExternalData::File& file : impl_->external.files()) paths.push_back(file.path);
  return paths;
}

int64_t ModelFile::write(const std::string& path) {
  if (!impl_->edited) {
    if (const std::optional<int64_t> bytes = copy_unedited(*impl_, path)) return *bytes;
  }
  return write_edited(*impl_, path, Embedded::kInside);
}

void ModelFile::write_beside(const std::string& path) {
  write_edited(*impl_, path, Embedded::kBeside);
}

}  // namespace parsimony::onnx_io
