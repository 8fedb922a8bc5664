#include "parsimony/onnx_io/skeleton.h"

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Constants that an exporter computes, such as 1/sqrt(head_dim), are smaller than weights.
constexpr int64_t kSmallConstant = 16;
constexpr int64_t kInside = int64_t{1} << 30;  // bytes in the model itself, which has 2 GB at most

constexpr const char* kIgnored = "parsimony.ignored";

onnx::ModelProto parsed(std::string_view bytes) {
  onnx::ModelProto model;
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw ModelError("the stored graph is not an ONNX model");
  }
  return model;
}

bool has_elements(const onnx::TensorProto& tensor) {
  return tensor.has_raw_data() || is_external(tensor) || tensor.float_data_size() > 0 ||
         tensor.int32_data_size() > 0 || tensor.int64_data_size() > 0 ||
         tensor.double_data_size() > 0 || tensor.uint64_data_size() > 0 ||
         tensor.string_data_size() > 0;
}

void clear_elements(onnx::TensorProto& tensor) {
  onnx::TensorProto empty;
  empty.set_name(tensor.name());
  empty.set_data_type(tensor.data_type());
  empty.mutable_dims()->CopyFrom(tensor.dims());
  tensor.Swap(&empty);
}

SkeletonWeight weight_of(const onnx::TensorProto& tensor) {
  return {tensor.name(), dtype_of_onnx(tensor.data_type()), dims_of(tensor), has_elements(tensor)};
}

void set_entry(onnx::TensorProto& tensor, const char* key, std::string value) {
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(std::move(value));
}

/// Stores elements in the model while they fit, then in an external data file.
class Elements {
 public:
  explicit Elements(std::string path) : path_(std::move(path)) {}

  void add(onnx::TensorProto& tensor, const std::vector<std::byte>& bytes) {
    const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto size = static_cast<int64_t>(view.size());
    if (inside_ + size <= kInside) {
      tensor.set_raw_data(view.data(), view.size());
      inside_ += size;
      return;
    }
    if (!file_) file_.emplace(path_);
    constexpr int64_t kAligned = 64;
    const int64_t padding = (kAligned - beside_ % kAligned) % kAligned;
    file_->write(std::string(padding, '\0'));
    file_->write(view);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    set_entry(tensor, "location", std::filesystem::path(path_).filename());
    set_entry(tensor, "offset", std::to_string(beside_ + padding));
    set_entry(tensor, "length", std::to_string(size));
    beside_ += padding + size;
  }

  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::string path_;
  std::optional<NewFile> file_;
  int64_t inside_ = 0;
  int64_t beside_ = 0;
};

}  // namespace

std::string skeleton_of(std::string_view bytes,
                        const std::function<bool(const std::string&)>& is_constant,
                        const std::vector<std::string>& ignored) {
  onnx::ModelProto model = parsed(bytes);
  model.clear_doc_string();
  for (const std::string& module : ignored) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(kIgnored);
    entry.set_value(module);
  }
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.clear_value_info();
  graph.clear_doc_string();
  for (onnx::NodeProto& node : *graph.mutable_node()) node.clear_doc_string();
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    const bool is_small = element_count(dims_of(tensor)) <= kSmallConstant;
    const bool stays = (is_small || is_constant(tensor.name())) && !is_external(tensor);
    if (!stays) clear_elements(tensor);
  }
  std::string skeleton;
  model.SerializeToString(&skeleton);
  return skeleton;
}

Skeleton read_skeleton(std::string_view bytes) {
  const onnx::ModelProto model = parsed(bytes);
  Skeleton skeleton;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    skeleton.weights.push_back(weight_of(tensor));
  }
  for (const onnx::StringStringEntryProto& entry : model.metadata_props()) {
    if (entry.key() == kIgnored) skeleton.ignored.push_back(entry.value());
  }
  return skeleton;
}

void fill_skeleton(std::string_view skeleton,
                   const std::function<std::optional<Filling>(const SkeletonWeight&)>& fill,
                   const std::string& path) {
  onnx::ModelProto model = parsed(skeleton);
  model.clear_metadata_props();
  Elements elements(path + ".data");
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    const SkeletonWeight weight = weight_of(tensor);
    const std::optional<Filling> filling = fill(weight);
    if (!filling) {
      if (!weight.filled) {
        throw ModelError("weight ", in_quotes(weight.name), " of the stored graph has no elements");
      }
      continue;
    }
    clear_elements(tensor);
    tensor.set_data_type(onnx_number(filling->dtype));
    tensor.clear_dims();
    for (const int64_t dim : filling->dims) tensor.add_dims(dim);
    elements.add(tensor, filling->bytes);
  }
  elements.commit();
  write_file(path, model.SerializeAsString());
}

}  // namespace parsimony::onnx_io
